/** Configurations as LiteLLM's documentation has them, and what becomes of each. */
interface Moved {
  readonly from: string;
  readonly yaml: string;
  /** Ids, each with its hosts in order. */
  readonly models: Readonly<Record<string, readonly string[]>>;
  /** Members of the configuration that is printed. */
  readonly has?: object;
  /** Everything that is not carried, and the beginning of why. */
  readonly leftOut: readonly string[];
  /** Secrets that the source holds in the clear, by their variable. */
  readonly secrets?: Readonly<Record<string, string>>;
}

export const MOVED: readonly Moved[] = [
  {
    from: "OpenAI, with keys from the environment",
    yaml: `
model_list:
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY }
  - model_name: gpt-4o-mini
    litellm_params: { model: gpt-4o-mini, api_key: os.environ/OPENAI_API_KEY }
`,
    models: { "openai/gpt-4o": ["openai"], "openai/gpt-4o-mini": ["openai"] },
    leftOut: [],
  },
  {
    from: "one model at OpenAI and two deployments of Azure, with order, weight and rates",
    yaml: `
model_list:
  - model_name: gpt-4o
    litellm_params:
      model: azure/gpt-4o-eu
      api_base: https://eu.openai.azure.com/
      api_key: os.environ/AZURE_EU_KEY
      api_version: "2024-10-21"
      rpm: 600
      tpm: 90000
      weight: 1
    model_info: { base_model: azure/gpt-4o }
  - model_name: gpt-4o
    litellm_params:
      model: azure/gpt-4o-us
      api_base: https://us.openai.azure.com
      api_key: os.environ/AZURE_US_KEY
      weight: 9
    model_info: { base_model: azure/gpt-4o }
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY, order: 2 }
router_settings:
  routing_strategy: simple-shuffle
  num_retries: 2
`,
    models: { "openai/gpt-4o": ["azure", "azure-2", "openai"] },
    leftOut: [
      "model_list[0] gpt-4o (azure/gpt-4o-eu): rpm: limits are those of a host's `keys`",
      "model_list[0] gpt-4o (azure/gpt-4o-eu): tpm: limits are those of a host's `keys`",
      "router_settings.num_retries: each host is tried once",
    ],
  },
  {
    from: "three organizations at one provider, with weights and rates, and one more as the last resort",
    yaml: `
model_list:
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/KEY_A, rpm: 600, tpm: 90000, weight: 4 }
  - model_name: gpt-4o-mini
    litellm_params: { model: openai/gpt-4o-mini, api_key: os.environ/KEY_A, rpm: 400, weight: 4 }
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: sk-b-in-the-clear, max_parallel_requests: 20, weight: 2 }
  - model_name: gpt-4o-mini
    litellm_params: { model: openai/gpt-4o-mini, api_key: sk-b-in-the-clear, max_parallel_requests: 10, weight: 2 }
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/KEY_C, weight: 1 }
  - model_name: gpt-4o-mini
    litellm_params: { model: openai/gpt-4o-mini, api_key: os.environ/KEY_C, weight: 1 }
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/KEY_D, order: 2 }
`,
    models: { "openai/gpt-4o": ["openai", "openai-2"], "openai/gpt-4o-mini": ["openai"] },
    has: {
      hosts: [
        {
          id: "openai",
          keys: [
            { env: "KEY_A", weight: 4, rpm: 1_000 },
            { env: "OPENAI_API_KEY", weight: 2, max_concurrent: 30 },
            { env: "KEY_C", weight: 1 },
          ],
        },
        { id: "openai-2" },
      ],
    },
    leftOut: [
      "model_list[0] gpt-4o (openai/gpt-4o): tpm: a limit of a host's key counts all of its models, and openai/gpt-4o-mini",
    ],
    secrets: { OPENAI_API_KEY: "sk-b-in-the-clear" },
  },
  {
    from: "keys of which each serves another model stay hosts of their own; rates are shares where no weight is given",
    yaml: `
model_list:
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/KEY_A, rpm: 3000 }
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/KEY_B, rpm: 1000 }
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/KEY_C, rpm: 500 }
  - model_name: gpt-4o-mini
    litellm_params: { model: openai/gpt-4o-mini, api_key: os.environ/KEY_C, rpm: 500 }
`,
    models: { "openai/gpt-4o": ["openai", "openai-2"], "openai/gpt-4o-mini": ["openai-2"] },
    has: {
      hosts: [
        {
          keys: [
            { env: "KEY_A", weight: 3, rpm: 3_000 },
            { env: "KEY_B", weight: 1, rpm: 1_000 },
          ],
        },
        { keys: [{ env: "KEY_C", rpm: 1_000 }] },
      ],
    },
    leftOut: [],
  },
  {
    from: "Anthropic with a secret in the clear, and a budget of new keys",
    yaml: `
model_list:
  - model_name: claude-sonnet
    litellm_params: { model: anthropic/claude-sonnet-4-5, api_key: sk-ant-in-the-clear }
litellm_settings:
  drop_params: true
  default_key_generate_params: { max_budget: 12.5, budget_duration: 30d, rpm_limit: 40, tpm_limit: 100000 }
general_settings:
  master_key: sk-a-master-key-of-some-length
`,
    models: { "anthropic/claude-sonnet": ["anthropic"] },
    has: { defaults: { accountless: { monthly_limit_usd: 12.5, rpm_limit: 40, tpm_limit: 100_000 } } },
    leftOut: ["litellm_settings.drop_params: what a host does not take is always left out"],
    secrets: {
      ANTHROPIC_API_KEY: "sk-ant-in-the-clear",
      GATEWAY_ADMIN_TOKEN: "sk-a-master-key-of-some-length",
    },
  },
  {
    from: "Bedrock and Vertex AI next to what can be served",
    yaml: `
model_list:
  - model_name: bedrock-claude
    litellm_params: { model: bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0, aws_region_name: us-east-1 }
  - model_name: vertex-gemini
    litellm_params: { model: vertex_ai/gemini-2.5-pro, vertex_project: my-project, vertex_location: us-central1 }
  - model_name: gemini
    litellm_params: { model: gemini/gemini-2.5-flash, api_key: os.environ/GEMINI_API_KEY }
`,
    models: { "google/gemini": ["gemini"] },
    leftOut: [
      "model_list[0] bedrock-claude (bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0): Bedrock's own language",
      "model_list[1] vertex-gemini (vertex_ai/gemini-2.5-pro): Vertex AI wants tokens",
    ],
  },
  {
    from: "names that every object has",
    yaml: `
model_list:
  - model_name: a
    litellm_params: { model: constructor/a, api_key: os.environ/A_KEY }
  - model_name: b
    litellm_params: { model: b, custom_llm_provider: toString }
  - model_name: gemini
    litellm_params: { model: gemini/gemini-2.5-flash, api_key: os.environ/GEMINI_API_KEY, valueOf: 1 }
router_settings: { routing_strategy: constructor, toString: 1 }
general_settings: { valueOf: 1 }
`,
    models: { "google/gemini": ["gemini"] },
    leftOut: [
      "model_list[0] a (constructor/a): LiteLLM's name for its provider is not known here",
      "model_list[1] b (b): models of toString are not served here",
      "model_list[2] gemini (gemini/gemini-2.5-flash): litellm_params.valueOf: requests are not changed",
      "router_settings.routing_strategy: there is no constructor",
      "router_settings.toString: there is no such setting here",
      "general_settings.valueOf: there is no such setting here",
    ],
  },
  {
    from: "Ollama and vLLM, without prices",
    yaml: `
model_list:
  - model_name: llama
    litellm_params: { model: ollama_chat/llama3.3, api_base: http://ollama.internal:11434 }
  - model_name: qwen
    litellm_params: { model: hosted_vllm/Qwen/Qwen3-32B, api_base: http://vllm.internal:8000/v1 }
    model_info: { max_input_tokens: 32768, max_output_tokens: 8192 }
  - model_name: embeddings
    litellm_params: { model: ollama/nomic-embed-text, api_base: http://ollama.internal:11434 }
    model_info: { mode: embedding }
`,
    models: { "ollama/llama": ["ollama"], "vllm/qwen": ["vllm"] },
    has: {
      hosts: [
        { id: "ollama", base_url: "http://ollama.internal:11434/v1" },
        { id: "vllm", base_url: "http://vllm.internal:8000/v1" },
      ],
    },
    leftOut: ["model_list[2] embeddings (ollama/nomic-embed-text): only text is generated here"],
  },
  {
    from: "an address that speaks OpenAI's language, with prices, headers and an organization",
    yaml: `
model_list:
  - model_name: house-model
    litellm_params:
      model: openai/house-70b
      api_base: https://llm.example.com/v1
      api_key: os.environ/HOUSE_KEY
      extra_headers: { x-tenant: secret-tenant }
      organization: org-1
      temperature: 0.2
    model_info:
      input_cost_per_token: 0.0000004
      output_cost_per_token: 0.0000016
      cache_read_input_token_cost: 1e-7
      max_tokens: 4096
      max_input_tokens: 65536
`,
    models: { "llm.example.com/house-model": ["llm.example.com"] },
    has: {
      models: [
        {
          price: { input: 0.4, output: 1.6, cache_read: 0.1 },
          context_length: 65_536,
          max_output_tokens: 4096,
        },
      ],
    },
    leftOut: [
      "model_list[0] house-model (openai/house-70b): litellm_params.temperature: requests are not changed",
    ],
    secrets: { LLM_EXAMPLE_COM_X_TENANT: "secret-tenant", LLM_EXAMPLE_COM_OPENAI_ORGANIZATION: "org-1" },
  },
  {
    from: "a pattern of all models of a provider, with one that is named",
    yaml: `
model_list:
  - model_name: "deepseek/*"
    litellm_params: { model: "deepseek/*", api_key: os.environ/DEEPSEEK_API_KEY }
  - model_name: "*"
    litellm_params: { model: "*" }
  - model_name: my-claude
    litellm_params: { model: claude-opus-4-5, api_key: os.environ/ANTHROPIC_API_KEY }
`,
    models: { "anthropic/my-claude": ["anthropic"] },
    leftOut: ["model_list[1] * (*): only a pattern of all models of one known provider"],
  },
  {
    from: "fallbacks, aliases and a strategy",
    yaml: `
model_list:
  - model_name: big
    litellm_params: { model: openai/gpt-4.1, api_key: os.environ/OPENAI_API_KEY }
  - model_name: small
    litellm_params: { model: openai/gpt-4.1-mini, api_key: os.environ/OPENAI_API_KEY }
router_settings:
  routing_strategy: latency-based-routing
  model_group_alias: { gpt-4: big, hidden: { model: small, hidden: true }, lost: nowhere }
  redis_host: redis.internal
litellm_settings:
  request_timeout: 300
  fallbacks: [{ big: [small] }]
  content_policy_fallbacks: [{ big: [small, nowhere] }]
  context_window_fallbacks: [{ small: [big] }]
`,
    models: { "openai/big": ["openai"], "openai/small": ["openai"] },
    has: {
      routing: { order: "latency" },
      generation: { total_ms: 300_000 },
      auto: { big: ["openai/big", "openai/small"] },
      models: [{ aliases: ["big", "gpt-4"], fallbacks: ["openai/small"] }, { aliases: ["small", "hidden"] }],
    },
    leftOut: [
      "router_settings.model_group_alias.lost: nowhere is not carried",
      "litellm_settings.content_policy_fallbacks.big: nowhere is not carried",
      "litellm_settings.context_window_fallbacks: clients name the models",
      "router_settings.redis_host: nodes share their state by PostgreSQL",
    ],
  },
  {
    from: "many providers with credentials in a list of their own",
    yaml: `
credential_list:
  - credential_name: groq-team
    credential_values: { api_key: os.environ/GROQ_API_KEY }
model_list:
  - model_name: gpt-oss
    litellm_params: { model: groq/openai/gpt-oss-120b, litellm_credential_name: groq-team }
  - model_name: mistral
    litellm_params: { model: mistral/mistral-large-latest, api_key: os.environ/MISTRAL_API_KEY }
  - model_name: grok
    litellm_params: { model: xai/grok-4, api_key: os.environ/XAI_API_KEY }
  - model_name: router
    litellm_params: { model: openrouter/deepseek/deepseek-r1, api_key: os.environ/OPENROUTER_API_KEY }
  - model_name: unknown
    litellm_params: { model: nlp_cloud/dolphin, api_key: os.environ/NLP_CLOUD_API_KEY }
`,
    models: {
      "openai/gpt-oss": ["groq"],
      "mistralai/mistral": ["mistral"],
      "x-ai/grok": ["xai"],
      "deepseek/router": ["openrouter"],
    },
    leftOut: ["model_list[4] unknown (nlp_cloud/dolphin): LiteLLM's name for its provider is not known here"],
  },
  {
    from: "a production file: caps of the whole proxy, caches, callbacks, a database, variables",
    yaml: `
environment_variables:
  OPENAI_API_KEY: sk-in-the-file
model_list:
  - model_name: gpt-5
    litellm_params: { model: openai/gpt-5, api_key: os.environ/OPENAI_API_KEY, max_parallel_requests: 50, timeout: 60 }
litellm_settings:
  max_budget: 1000
  budget_duration: 30d
  cache: true
  cache_params: { type: redis }
  success_callback: [langfuse]
  upperbound_key_generate_params: { max_budget: 5, budget_duration: 24h, duration: 7d }
general_settings:
  master_key: os.environ/LITELLM_MASTER_KEY
  database_url: os.environ/DATABASE_URL
  alerting: [slack]
  store_model_in_db: true
guardrails: []
`,
    models: { "openai/gpt-5": ["openai"] },
    has: {
      defaults: { account: { daily_limit_usd: 5 } },
      hosts: [{ id: "openai", keys: [{ env: "OPENAI_API_KEY", max_concurrent: 50 }] }],
    },
    leftOut: [
      "model_list[0] gpt-5 (openai/gpt-5): litellm_params.timeout: times are the same for all models",
      "litellm_settings.upperbound_key_generate_params.duration: a key ends",
      "litellm_settings.max_budget: there is no cap over all customers",
      "litellm_settings.cache: answers are not cached",
      "litellm_settings.cache_params: answers are not cached",
      "litellm_settings.success_callback: metrics",
      "general_settings.database_url: this is LiteLLM's own database",
      "general_settings.alerting: deploy/alerts.yaml",
      "general_settings.store_model_in_db: there is no such setting here",
      "guardrails: there is no such setting here",
    ],
    secrets: { OPENAI_API_KEY: "sk-in-the-file" },
  },
];
