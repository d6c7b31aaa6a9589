import { useState } from "preact/hooks";
import { Head } from "../parts/frame.tsx";
import { Loaded, Note, Problem } from "../parts/notice.tsx";
import { useAction, useResource } from "../resource.ts";
import { useOperator } from "./operator.ts";

/** The configuration in force, every default applied and no secret in it; and the way to read the file again. */
export function ConfigPage() {
  const api = useOperator();
  const config = useResource(() => api.get<Record<string, unknown>>("admin/config"), [api]);
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
          Read the file again
        </button>
      </Head>
      <Problem error={reload.error} />
      {reloaded && (
        <Note tone="good">
          <p>The file was read and is in force.</p>
        </Note>
      )}
      <Loaded of={config}>
        {(data) => (
          <>
            {Object.entries(data).map(([name, value]) => (
              <details key={name} class="card config" open={!isLarge(value)}>
                <summary>{name}</summary>
                <pre class="mono">{JSON.stringify(value, null, 2)}</pre>
              </details>
            ))}
          </>
        )}
      </Loaded>
    </>
  );
}

const isLarge = (value: unknown): boolean => JSON.stringify(value).length > 600;
