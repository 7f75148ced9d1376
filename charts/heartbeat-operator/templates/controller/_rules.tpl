{{/*
The rights of the controller in the namespaces that it watches. Secrets and ConfigMaps are read and written by name, never listed or
watched. (list $ "ClusterRole")
*/}}
{{- define "heartbeat-operator.controllerRules" -}}
{{- $isCluster := eq (index . 1) "ClusterRole" -}}
{{- $root := index . 0 -}}
- apiGroups: [heartbeat-operator.io]
  resources: [heartbeatchecks, heartbeatchannels, heartbeatsilences]
  verbs: [get, list, watch, patch]
- apiGroups: [heartbeat-operator.io]
  resources: [heartbeatchecks/status, heartbeatchannels/status, heartbeatsilences/status]
  verbs: [update, patch]
{{- if not (and $isCluster (eq $root.Values.rbac.secrets "namespaces")) }}
{{ include "heartbeat-operator.publisherRules" $root }}
{{- end }}
{{- if $isCluster }}
# Which projects a namespace may use; and the uid of kube-system, which distinguishes two clusters with one name.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
{{- else }}
# Which projects this namespace may use: a Role grants no more than the Namespace that it is in.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- end }}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* The right to publish. */}}
{{- define "heartbeat-operator.publisherRules" -}}
# The ping URLs, and the Secrets of HeartbeatChannels.
- apiGroups: [""]
  resources: [secrets, configmaps]
  verbs: [get, create, patch, delete]
{{- end -}}

{{/* The rights to monitor CronJobs, the same everywhere. Nothing writes a CronJob, a Job or a pod. */}}
{{- define "heartbeat-operator.cronJobRules" -}}
# Which Jobs a CronJob has made, and how they ended.
- apiGroups: [batch]
  resources: [cronjobs, jobs]
  verbs: [get, list, watch]
# Why a container failed, or does not start: a pod may be gone a second after its Job has failed.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
# Why a Job has no pod, or a CronJob no Job.
- apiGroups: [""]
  resources: [events]
  verbs: [list]
# The HeartbeatChecks of labelled CronJobs. The admission policy limits both verbs to these.
- apiGroups: [heartbeat-operator.io]
  resources: [heartbeatchecks]
  verbs: [create, delete]
{{- if eq (include "heartbeat-operator.cronJobLogs" .) "failed" }}
# The last lines of a container that failed: cronJobs.logs.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
{{- end -}}
