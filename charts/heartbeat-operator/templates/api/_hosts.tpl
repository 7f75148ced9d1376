{{/*
Which of our Services a host leads to, by path: one host may have both. Then pings by addresses without /ping, as some installations of healthchecks have
them, need a host of their own. (.Values.ingress or .Values.httpRoute)
*/}}
{{- define "heartbeat-operator.hosts" -}}
{{- $hosts := dict -}}
{{- with .pingHost -}}
{{- $paths := ternary (list "/ping" "/api/push") (list "/") (eq . ($.apiHost | default "")) -}}
{{- $_ := set $hosts . (list (dict "paths" $paths "port" "ping")) -}}
{{- end -}}
{{- with .apiHost -}}
{{- $_ := set $hosts . (append (get $hosts . | default list) (dict "paths" (list "/") "port" "api")) -}}
{{- end -}}
{{- toYaml $hosts -}}
{{- end -}}
