#!/usr/bin/env bash
# Checks the chart: lints it, renders it with five sets of values, and holds everything that it renders against the schemas of
# Kubernetes and, where CRDS names a folder with its CustomResourceDefinitions, of the Prometheus Operator.
#
#   CRDS=prometheus-operator/example/prometheus-operator-crd scripts/chart.sh
#
# Needs helm, and Python with kubernetes-validate and PyYAML.
set -euo pipefail
KUBE_VERSION=${KUBE_VERSION:-1.31.0}
chart=$(dirname "$0")/../deploy/helm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat > "$work/sqlite.yaml" <<'VALUES'
adminToken: { existingSecret: gateway }
VALUES
cat > "$work/sqlite-full.yaml" <<'VALUES'
adminToken: { existingSecret: gateway, key: token }
envFromSecrets: [provider-keys]
env: [{ name: LOG, value: json }]
config: { defaults: { accountless: { rpm_limit: 10 } } }
persistence: { size: 5Gi, storageClass: fast }
ingress: { enabled: true, className: nginx, host: gateway.example.com, tlsSecret: gateway-tls }
serviceMonitor: { enabled: true, labels: { release: prometheus } }
prometheusRule: { enabled: true, labels: { release: prometheus } }
dashboard: { enabled: true }
VALUES
cat > "$work/postgres.yaml" <<'VALUES'
mode: postgres
adminToken: { existingSecret: gateway }
postgres: { host: db, existingSecret: db }
VALUES
cat > "$work/postgres-diskless.yaml" <<'VALUES'
mode: postgres-diskless
replicas: 5
adminToken: { existingSecret: gateway }
postgres: { host: db, existingSecret: db, parameters: sslmode=require }
serviceMonitor: { enabled: true }
prometheusRule: { enabled: true }
VALUES
cat > "$work/placed.yaml" <<'VALUES'
mode: postgres-diskless
image: { digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000" }
imagePullSecrets: [{ name: registry }]
adminToken: { existingSecret: gateway }
postgres: { host: db, existingSecret: db }
serviceAccount: { annotations: { role: gateway } }
podAnnotations: { team: a }
podLabels: { team: a }
nodeSelector: { pool: a }
tolerations: [{ key: pool, operator: Equal, value: a, effect: NoSchedule }]
affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: zone, labelSelector: {} }] } }
VALUES

for values in "$work"/*.yaml; do
  helm lint --quiet "$chart" --values "$values" 2>/dev/null
  helm template gateway "$chart" --kube-version "$KUBE_VERSION" --values "$values" 2>"$work/warnings" > "$work/rendered" || { cat "$work/warnings"; exit 1; }
  python3 - "$(basename "$values" .yaml)" "$work/rendered" "${CRDS:-}" "$KUBE_VERSION" <<'PYTHON'
import pathlib, re, sys
import jsonschema, kubernetes_validate, yaml

name, rendered, crds, kube = sys.argv[1:]
schemas = {}
for file in pathlib.Path(crds).glob("*.yaml") if crds else []:
    for crd in filter(None, yaml.safe_load_all(file.read_text())):
        for version in crd["spec"]["versions"]:
            key = (f'{crd["spec"]["group"]}/{version["name"]}', crd["spec"]["names"]["kind"])
            schemas[key] = version["schema"]["openAPIV3Schema"]

def strict(schema):
    """As an API server does that is told to refuse unknown fields."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    if isinstance(made.get("pattern"), str):
        # Go's expressions may turn flags on in the middle.
        made["pattern"] = re.sub(r"\(\?i\)(.*)", r"(?i:\1)", made["pattern"])
    if made.pop("x-kubernetes-int-or-string", False):
        made = {"anyOf": [{"type": "integer"}, {"type": "string", **made}]}
    open_ended = made.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in made
    if made.get("type") == "object" and "properties" in made and not open_ended:
        made["additionalProperties"] = False
    return made

counts, unchecked = {}, []
for document in filter(None, yaml.safe_load_all(pathlib.Path(rendered).read_text())):
    kind, version = document["kind"], document["apiVersion"]
    if version.startswith("monitoring.coreos.com/"):
        if (version, kind) not in schemas:
            unchecked.append(kind)
            continue
        schema = strict(schemas[version, kind])
        schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
        jsonschema.validate(document, schema)
    else:
        kubernetes_validate.validate(document, ".".join(kube.split(".")[:2]), strict=True)
    counts[kind] = counts.get(kind, 0) + 1
print(f"{name}:", ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
if unchecked:
    print("  not checked, because CRDS has no schema of them:", ", ".join(unchecked))
PYTHON
done
