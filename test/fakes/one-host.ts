/**
 * The configuration of a gateway with one host and one model, `test/model`, whose output alone costs; keys
 * have no limits.
 */
export const oneHost = (hostUrl: string): string => `
hosts:
  - { id: h, base_url: "${hostUrl}/v1", speaks: [chat.completions] }
models:
  - id: test/model
    name: Test
    context_length: 1000
    max_output_tokens: 100
    price: { input: 0, output: 10 }
    routes: [{ host: h, model: host-model }]
defaults:
  accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }`;
