{{/* After everything else of the release is deleted, in the order of the weights. */}}
{{- define "heartbeat-operator.uninstallHook" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
