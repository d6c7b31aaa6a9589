import { useState } from "preact/hooks";
import type { ConfigAnswer } from "../../api/admin.ts";
import { Head } from "../parts/frame.tsx";
import { Loaded, Note, Problem } from "../parts/notice.tsx";
import { useAction, useResource } from "../resource.ts";
import { useOperator } from "./operator.ts";

/**
 * The configuration in force, every default applied and no secret in it; and the way to read the file again.
 */
export function ConfigPage() {
  const api = useOperator();
  const config = useResource(() => api.get<ConfigAnswer>("admin/config"), [api]);
  const [reloaded, setReloaded] = useState(false);
  const reload = useAction(async () => {
    setReloaded(false);
    await api.post("admin/reload");
    setReloaded(true);
    config.reload();
  });
  return (
    <>
      <Head title="Configuration" lead="What is in force now, with every default. Secrets are not shown.">
        <button type="button" class="quiet" disabled={reload.busy} onClick={() => reload.run()}>
          Reload the file
        </button>
      </Head>
      <Problem error={reload.error} />
      {reloaded && (
        <Note tone="good">
          <p>The file was reloaded and is in force.</p>
        </Note>
      )}
      <Loaded of={config}>
        {(data) => (
          <>
            <section class="card" aria-labelledby="general">
              <h2 id="general">General</h2>
              <dl class="facts">
                {Object.entries(data)
                  .filter(([, value]) => !isGroup(value))
                  .map(([name, value]) => (
                    <Fact key={name} name={name} value={value} />
                  ))}
              </dl>
            </section>
            {Object.entries(data)
              .filter(([, value]) => isGroup(value))
              .map(([name, value]) => (
                <details key={name} class="card config">
                  <summary>
                    {name} <span class="soft small">{sizeOf(value)}</span>
                  </summary>
                  <pre class="mono">{JSON.stringify(value, null, 2)}</pre>
                </details>
              ))}
          </>
        )}
      </Loaded>
    </>
  );
}

const isGroup = (value: unknown): boolean => typeof value === "object" && value !== null;

const sizeOf = (value: unknown): string =>
  Array.isArray(value) ? String(value.length) : Object.keys(value as object).join(", ");

const Fact = ({ name, value }: { name: string; value: unknown }) => (
  <>
    <dt>{name}</dt>
    <dd class="mono">{value === null ? "–" : String(value)}</dd>
  </>
);
