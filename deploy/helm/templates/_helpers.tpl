{{- define "gateway.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "gateway.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "gateway.usesPostgres" -}}
{{- if ne .Values.mode "sqlite" }}yes{{ end }}
{{- end }}

{{- define "gateway.isDiskless" -}}
{{- if eq .Values.mode "postgres-diskless" }}yes{{ end }}
{{- end }}

{{- define "gateway.replicas" -}}
{{- if eq .Values.mode "sqlite" }}1{{ else }}{{ .Values.replicas }}{{ end }}
{{- end }}

{{/* gateway.yaml: what the chart knows, and over it what `config` says. */}}
{{- define "gateway.config" -}}
{{- $own := dict "metrics" "0.0.0.0:9090" "shutdown_delay_ms" (mul .Values.shutdownDelaySeconds 1000) "drain_ms" (mul .Values.drainSeconds 1000) }}
{{- if include "gateway.usesPostgres" . }}
{{- $host := required "postgres.host is required in mode postgres and postgres-diskless" .Values.postgres.host }}
{{- $url := printf "postgres://%s:${PG_PASSWORD}@%s:%v/%s" .Values.postgres.user $host .Values.postgres.port .Values.postgres.database }}
{{- if .Values.postgres.parameters }}{{ $url = printf "%s?%s" $url .Values.postgres.parameters }}{{ end }}
{{- $_ := set $own "store" $url }}
{{- end }}
{{- if include "gateway.isDiskless" . }}{{ $_ := set $own "journal" "postgres" }}{{ end }}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) }}
{{- end }}

{{- define "gateway.pod" -}}
metadata:
  labels:
    {{- include "gateway.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # A changed configuration restarts the pods one after the other.
    checksum/config: {{ include "gateway.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "gateway.name" . }}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ add .Values.shutdownDelaySeconds .Values.drainSeconds 20 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  containers:
    - name: gateway
      image: {{ include "gateway.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      env:
        - { name: HOST, value: 0.0.0.0 }
        - { name: PORT, value: "8080" }
        - { name: GATEWAY_CONFIG, value: /etc/gateway/gateway.yaml }
        - { name: GATEWAY_DATA, value: /data }
        - name: GATEWAY_ADMIN_TOKEN
          valueFrom:
            secretKeyRef:
              name: {{ required "adminToken.existingSecret is required: a Secret with the admin token" .Values.adminToken.existingSecret }}
              key: {{ .Values.adminToken.key }}
        {{- if include "gateway.usesPostgres" . }}
        - name: PG_PASSWORD
          valueFrom:
            secretKeyRef:
              name: {{ required "postgres.existingSecret is required: a Secret with the password" .Values.postgres.existingSecret }}
              key: {{ .Values.postgres.key }}
        {{- end }}
        {{- with .Values.env }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- with .Values.envFromSecrets }}
      envFrom:
        {{- range . }}
        - secretRef: { name: {{ . }} }
        {{- end }}
      {{- end }}
      ports:
        - { name: http, containerPort: 8080 }
        - { name: metrics, containerPort: 9090 }
      # The start reads journals back before it is ready; liveness begins when that is over.
      startupProbe:
        httpGet: { path: /healthz, port: http }
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        httpGet: { path: /healthz, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /readyz, port: http }
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 2
      resources: {{ toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - { name: config, mountPath: /etc/gateway, readOnly: true }
        - { name: data, mountPath: /data }
  volumes:
    - name: config
      configMap: { name: {{ include "gateway.name" . }} }
    {{- if include "gateway.isDiskless" . }}
    - name: data
      emptyDir: { sizeLimit: 256Mi }
    {{- end }}
  {{- if gt (int (include "gateway.replicas" .)) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{ include "gateway.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
