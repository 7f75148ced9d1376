{{/* The rights of the controller in the namespaces that it watches. Secrets and ConfigMaps are read and written by name, never listed or watched. */}}
{{- define "heartbeat-operator.controllerRules" -}}
- apiGroups: [heartbeat-operator.io]
  resources: [heartbeatchecks]
  verbs: [get, list, watch, patch]
- apiGroups: [heartbeat-operator.io]
  resources: [heartbeatchecks/status]
  verbs: [update, patch]
# The ping URLs.
- apiGroups: [""]
  resources: [secrets, configmaps]
  verbs: [get, create, patch, delete]
# Which projects a namespace may use; and, everywhere, the uid of kube-system, which distinguishes two clusters with one name.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
