{{/* After everything else of the release is deleted, in the order of the weights. (list $ "-10") */}}
{{- define "heartbeat-operator.uninstallMeta" -}}
{{- $hook := dict "helm.sh/hook" "post-delete" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" -}}
{{- $_ := set $hook "helm.sh/hook-weight" (index . 1) -}}
{{- $_ := set $hook "helm.sh/hook-output-log-policy" "hook-succeeded,hook-failed" -}}
{{- include "heartbeat-operator.meta" (list (index . 0) "uninstall" (dict "annotations" $hook)) -}}
{{- end -}}
