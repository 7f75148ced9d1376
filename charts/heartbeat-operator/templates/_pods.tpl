{{/* Shared by the pods of api and controller. */}}

{{/* Metadata of the pods. (list $ "api" .Values.api) */}}
{{- define "heartbeat-operator.podMetadata" -}}
{{- $root := index . 0 -}}
{{- with index . 2 -}}
labels:
  {{- include "heartbeat-operator.podLabels" $ | fromYaml | merge (dict "heartbeat-operator.io/metrics" "true") | toYaml | nindent 2 }}
annotations:
  checksum/config: {{ include (print $root.Template.BasePath "/configmap.yaml") $root | sha256sum }}
  {{- with .podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Labels by which pods are selected take precedence. (list $ "api" .Values.api) */}}
{{- define "heartbeat-operator.podLabels" -}}
{{- $common := deepCopy ((index . 0).Values.commonLabels | default dict) -}}
{{- mergeOverwrite $common ((index . 2).podLabels | default dict) (include "heartbeat-operator.selectorLabels" . | fromYaml) | toYaml -}}
{{- end -}}

{{/* Fields that every pod, also of a hook, takes from the values of its component. (list $ .Values.api) */}}
{{- define "heartbeat-operator.everyPod" -}}
{{- $values := (index . 0).Values -}}
{{- $secrets := list -}}
{{- range concat (($values.global).imagePullSecrets | default list) ($values.imagePullSecrets | default list) -}}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- $fields := pick (index . 1) "nodeSelector" "tolerations" "runtimeClassName" "dnsConfig" "hostAliases" -}}
{{- range $field, $value := set $fields "imagePullSecrets" (uniq $secrets) -}}
{{- if not $value }}{{ $_ := unset $fields $field }}{{ end -}}
{{- end -}}
{{- with $fields }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Where and how the pods run. (list $ "api" .Values.api) */}}
{{- define "heartbeat-operator.scheduling" -}}
{{- include "heartbeat-operator.everyPod" (list (index . 0) (index . 2)) }}
{{- with index . 2 -}}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- if .topologySpread.enabled }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: {{ .topologySpread.topologyKey | quote }}
    whenUnsatisfiable: {{ .topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "heartbeat-operator.selectorLabels" $ | nindent 8 }}
    # Otherwise a rollout counts the old pods too, and the new ones may run on one node.
    matchLabelKeys: [{{ include "heartbeat-operator.versionLabel" $ }}]
{{- end }}
{{- with .initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* A Deployment that is made anew has no rolling update to describe. (.Values.api.strategy) */}}
{{- define "heartbeat-operator.strategy" -}}
{{- eq .type "Recreate" | ternary (dict "type" .type) . | toYaml -}}
{{- end -}}

{{/* The label by which Kubernetes tells the versions of these pods apart. (list $ "api" .Values.api) */}}
{{- define "heartbeat-operator.versionLabel" -}}
{{- if and (eq (index . 1) "api") (eq (include "heartbeat-operator.apiKind" (index . 0)) "StatefulSet") -}}
controller-revision-hash
{{- else -}}
pod-template-hash
{{- end -}}
{{- end -}}

{{/* Pings on disk while the database is unavailable. `maxBytes`; `hasVolumes`: each replica has a persistent one. */}}
{{- define "heartbeat-operator.spool" -}}
{{- with .Values.api.spool -}}
maxBytes: {{ .maxBytes | int64 }}
hasVolumes: {{ and (gt (int64 .maxBytes) 0) .persistentVolume.enabled }}
{{- end -}}
{{- end -}}

{{- define "heartbeat-operator.apiKind" -}}
{{- ternary "StatefulSet" "Deployment" (include "heartbeat-operator.spool" . | fromYaml).hasVolumes -}}
{{- end -}}

{{- define "heartbeat-operator.spoolEnv" -}}
{{- $spool := include "heartbeat-operator.spool" . | fromYaml -}}
{{- if $spool.maxBytes }}
# A folder that the process makes, so that it alone can read it.
- name: SPOOL_DIR
  value: /var/spool/heartbeat-operator/pings
{{- end }}
- name: SPOOL_MAX_BYTES
  value: {{ $spool.maxBytes | int64 | quote }}
{{- end -}}

{{/* Variables of api and controller that are not in the ConfigMap. */}}
{{- define "heartbeat-operator.env" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      {{- if include "heartbeat-operator.hasOwnDatabase" . }}
      name: {{ include "heartbeat-operator.postgresqlSecret" . | quote }}
      key: uri
      {{- else }}
      name: {{ .Values.database.existingSecret | quote }}
      key: {{ .Values.database.existingSecretKey | quote }}
      {{- end }}
{{- with include "heartbeat-operator.metricsSecret" . }}
- name: METRICS_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ . | quote }}
      key: {{ include "heartbeat-operator.metricsSecretKey" $ | quote }}
{{- end }}
{{- end -}}

{{/* Variables of the api only: what opens channels, signs tokens, and makes the first user. The controller waits for the api to do so. */}}
{{- define "heartbeat-operator.apiEnv" -}}
{{- $bootstrap := .Values.bootstrap.existingSecret -}}
- name: SECRET_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "heartbeat-operator.secretKeySecret" . | quote }}
      key: {{ empty .Values.secretKey.existingSecret | ternary "SECRET_KEY" .Values.secretKey.existingSecretKey | quote }}
- name: PREVIOUS_SECRET_KEYS
  valueFrom:
    secretKeyRef:
      name: {{ include "heartbeat-operator.secretKeySecret" . | quote }}
      key: PREVIOUS_SECRET_KEYS
      optional: true
{{- /* The first start generates a key that is missing. An optional key waits for no Secret: SECRET_KEY waits for its own. */}}
{{- $isOptional := and (not (empty $bootstrap)) (eq $bootstrap .Values.secretKey.existingSecret) }}
# For the first start, while the database is empty.
- name: BOOTSTRAP_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "heartbeat-operator.bootstrapSecret" . | quote }}
      key: BOOTSTRAP_PASSWORD
      optional: {{ $isOptional }}
- name: BOOTSTRAP_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "heartbeat-operator.bootstrapSecret" . | quote }}
      key: BOOTSTRAP_API_KEY
      optional: {{ $isOptional }}
{{- with .Values.signIn.existingSecret }}
- name: SIGN_IN
  valueFrom:
    secretKeyRef:
      name: {{ . | quote }}
      key: {{ $.Values.signIn.existingSecretKey | quote }}
{{- end }}
- name: BOOTSTRAP_EMAIL
  value: {{ .Values.bootstrap.email | quote }}
{{- with .Values.bootstrap.projectId }}
- name: BOOTSTRAP_PROJECT_ID
  value: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Variables of the api only: receivers of notifications, with their credentials. */}}
{{- define "heartbeat-operator.deliveryEnv" -}}
{{- range $name, $secret := dict "ALERTMANAGER_URL" .Values.alertmanager "WATCHDOG_URL" .Values.watchdog "SMTP_URL" .Values.smtp }}
{{- with $secret.existingSecret }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ . | quote }}
      key: {{ $secret.existingSecretKey | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What the user adds to the pods of a component: the shared list, then its own. (list $ "controller" "extraVolumes") */}}
{{- define "heartbeat-operator.extras" -}}
{{- $root := index . 0 -}}
{{- $field := index . 2 -}}
{{- concat (get $root.Values $field | default list) (get (get $root.Values (index . 1)) $field | default list) | toYaml -}}
{{- end -}}

{{/*
Variables of the user. A variable that the chart sets too would make the pod invalid, with an unclear message.
The pods of the api get no credentials of a cluster. (list $ "api")
*/}}
{{- define "heartbeat-operator.extraEnv" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $own := list "ROLE" "DRAIN_SECONDS" "SPOOL_DIR" }}
{{- range list "env" "apiEnv" "deliveryEnv" "spoolEnv" }}
{{- range include (print "heartbeat-operator." .) $root | fromYamlArray }}
{{- $own = append $own .name }}
{{- end }}
{{- end }}
{{- $extra := include "heartbeat-operator.extras" (list $root $component "extraEnv") | fromYamlArray }}
{{- $names := list }}
{{- range $extra }}
{{- if has .name $own }}
{{- fail (printf "extraEnv: %s is set by the chart; use the value for it (README.md)" .name) }}
{{- end }}
{{- if has .name $names }}
{{- fail (printf "extraEnv: %s is set twice, by extraEnv and %s.extraEnv together" .name $component) }}
{{- end }}
{{- if and (eq $component "api") (eq .name "KUBECONFIG") }}
{{- fail "extraEnv: set KUBECONFIG in controller.extraEnv, and its file in controller.extraVolumes: the pods of the api get no credentials of a cluster" }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- with $extra }}
{{- toYaml . }}
{{- end }}
{{- end -}}

{{/* Startup waits up to ten minutes for the database and its migrations. */}}
{{- define "heartbeat-operator.startupAndLiveness" -}}
startupProbe:
  httpGet:
    path: /startupz
    port: ops
  periodSeconds: 2
  failureThreshold: 300
livenessProbe:
  httpGet:
    path: /livez
    port: ops
  periodSeconds: 10
  timeoutSeconds: 5
{{- end -}}
