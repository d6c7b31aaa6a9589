import { useState } from "preact/hooks";
import type { ConfigAnswer } from "../../api/admin.ts";
import { Facts, Head, Loaded, Note, Problem, Section } from "../parts/page.tsx";
import { useAction, useApi, useGet } from "../resource.ts";
import { RoleButton } from "./role-button.tsx";

/**
 * The configuration in force, every default applied and no secret in it; and the way to read the file again.
 */
export function ConfigPage() {
  const api = useApi();
  const config = useGet<ConfigAnswer>("admin/config");
  const [reloaded, setReloaded] = useState(false);
  const reload = useAction(async () => {
    setReloaded(false);
    await api.post("admin/reload");
    setReloaded(true);
    config.reload();
  });
  return (
    <>
      <Head
        title="Configuration"
        lead="The settings in force, including every default. Secrets are not shown."
      >
        <RoleButton needs="admin" label="Reload the file" action={reload} />
      </Head>
      <Problem error={reload.error} />
      {reloaded && <Note tone="good">The file was reloaded and is in force.</Note>}
      <Loaded of={config}>
        {(data) => {
          const members = Object.entries(data);
          const facts = members.filter(([, value]) => !isGroup(value));
          return (
            <>
              <Section title="General" class="card">
                <Facts
                  of={facts.map(([name, value]) => [name, value === null ? "–" : String(value), "mono"])}
                />
              </Section>
              {members
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
          );
        }}
      </Loaded>
    </>
  );
}

const isGroup = (value: unknown): boolean => typeof value === "object" && value !== null;

const sizeOf = (value: unknown): string =>
  Array.isArray(value) ? String(value.length) : Object.keys(value as object).join(", ");
