{{/* Which of our Services a host leads to, by path: one host may have both. (.Values.ingress or .Values.httpRoute) */}}
{{- define "heartbeat-operator.hosts" -}}
{{- $hosts := dict -}}
{{- with .pingHost -}}
{{- $_ := set $hosts . (list (dict "path" "/ping" "port" "ping")) -}}
{{- end -}}
{{- with .apiHost -}}
{{- $_ := set $hosts . (append (get $hosts . | default list) (dict "path" "/" "port" "api")) -}}
{{- end -}}
{{- toYaml $hosts -}}
{{- end -}}
