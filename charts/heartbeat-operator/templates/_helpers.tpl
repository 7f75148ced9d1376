{{/*
The first part of every name. Room is left for the longest ending, -postgresql-0, and a hash of pods. A release may have dots in its
name, a Service may not.
*/}}
{{- define "heartbeat-operator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $default := printf "%s-%s" .Release.Name $name -}}
{{- if or (contains $name .Release.Name) (contains "heartbeat" .Release.Name) -}}
{{- $default = .Release.Name -}}
{{- end -}}
{{- .Values.fullnameOverride | default $default | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The first part of the names of objects that belong to the cluster: releases of one name in two namespaces share none. */}}
{{- define "heartbeat-operator.clusterPrefix" -}}
{{ include "heartbeat-operator.fullname" . }}-{{ .Release.Namespace }}
{{- end -}}

{{/* Labels by which Deployments and Services select their pods; they never change. (list $ "api") */}}
{{- define "heartbeat-operator.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Values.nameOverride | default $root.Chart.Name | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "heartbeat-operator.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "heartbeat-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end -}}

{{/*
Labels and annotations of an object; with "" for objects of no single component. What the object needs itself takes
precedence over commonLabels and commonAnnotations. (list $ "api" (dict "labels" .labels "annotations" .annotations))
*/}}
{{- define "heartbeat-operator.meta" -}}
{{- $values := (index . 0).Values -}}
{{- $own := dict -}}
{{- if gt (len .) 2 }}{{ $own = index . 2 }}{{ end -}}
labels:
  {{- mergeOverwrite (deepCopy ($values.commonLabels | default dict)) (include "heartbeat-operator.labels" . | fromYaml) ($own.labels | default dict) | toYaml | nindent 2 }}
{{- with mergeOverwrite (deepCopy ($values.commonAnnotations | default dict)) ($own.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The image; global.imageRegistry replaces the registry in its repository. (list $ .Values.image) */}}
{{- define "heartbeat-operator.image" -}}
{{- $root := index . 0 -}}
{{- with index . 1 -}}
{{- $repository := .repository -}}
{{- with ($root.Values.global).imageRegistry -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $repository "") -}}
{{- end -}}
{{- if .digest -}}
{{ $repository }}@{{ .digest }}
{{- else -}}
{{ $repository }}:{{ .tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The account of the pods of a component. (list $ "api") */}}
{{- define "heartbeat-operator.serviceAccountName" -}}
{{- $component := index . 1 -}}
{{- $account := (get (index . 0).Values $component).serviceAccount -}}
{{- if not (or $account.create $account.name) -}}
{{- fail (printf "%s.serviceAccount.create: false needs %s.serviceAccount.name, an account that is there" $component $component) -}}
{{- end -}}
{{- $account.name | default (printf "%s-%s" (include "heartbeat-operator.fullname" (index . 0)) $component) -}}
{{- end -}}

{{- define "heartbeat-operator.pingService" -}}
{{ include "heartbeat-operator.fullname" . }}-ping.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "heartbeat-operator.apiService" -}}
{{ include "heartbeat-operator.fullname" . }}-api.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "heartbeat-operator.hasOwnDatabase" -}}
{{- if not .Values.database.existingSecret }}true{{ end -}}
{{- end -}}

{{- define "heartbeat-operator.postgresqlSecret" -}}
{{- .Values.postgresql.existingSecret | default (printf "%s-postgresql" (include "heartbeat-operator.fullname" .)) -}}
{{- end -}}

{{- define "heartbeat-operator.secretKeySecret" -}}
{{- .Values.secretKey.existingSecret | default (include "heartbeat-operator.fullname" .) -}}
{{- end -}}

{{- define "heartbeat-operator.bootstrapSecret" -}}
{{- .Values.bootstrap.existingSecret | default (include "heartbeat-operator.fullname" .) -}}
{{- end -}}

{{/* The Secret with the token of /metrics; empty: /metrics needs none. */}}
{{- define "heartbeat-operator.metricsSecret" -}}
{{- with .Values.metricsToken -}}
{{- .existingSecret | default (empty .value | ternary "" (printf "%s-metrics" (include "heartbeat-operator.fullname" $))) -}}
{{- end -}}
{{- end -}}

{{- define "heartbeat-operator.metricsSecretKey" -}}
{{- with .Values.metricsToken -}}
{{- empty .existingSecret | ternary "METRICS_TOKEN" .existingSecretKey -}}
{{- end -}}
{{- end -}}

{{/*
A value of a Secret, in base64: what the cluster has, else a new one.
So an upgrade, or an installation where an earlier one left the Secret, changes nothing.
Where Helm does not see the cluster (`helm template`, Argo CD), each rendering would generate another value: rendering
fails instead. (list $ "name of the Secret" "key" "new value" "value that names your Secret")
*/}}
{{- define "heartbeat-operator.keptSecretValue" -}}
{{- $root := index . 0 -}}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace (index . 1) | default dict -}}
{{- $value := dig "data" (index . 2) "" $found -}}
{{- if not (or $value $root.Values.generateSecrets (lookup "v1" "Namespace" "" "kube-system")) -}}
{{- fail (printf "the Secret %s/%s with the key %s is missing, and this rendering does not see the cluster (helm template, Argo CD, --dry-run): each rendering would generate another secret. Create a Secret and name it in %s, or set generateSecrets: true to generate one in this rendering (README.md, \"Your own Secrets\")" $root.Release.Namespace (index . 1) (index . 2) (index . 4)) -}}
{{- end -}}
{{- $value | default (index . 3 | b64enc) -}}
{{- end -}}

{{/* Whether there is more than one pod, so that one can be evicted. (list $ .Values.api) */}}
{{- define "heartbeat-operator.hasPeers" -}}
{{- with index . 1 -}}
{{- $replicas := .replicas -}}
{{- if and .autoscaling .autoscaling.enabled -}}
{{- $replicas = .autoscaling.minReplicas -}}
{{- end -}}
{{- if gt (int $replicas) 1 }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* `failed` or `off`, which YAML reads as false without quotes. */}}
{{- define "heartbeat-operator.cronJobLogs" -}}
{{- .Values.cronJobs.logs | default "off" -}}
{{- end -}}
