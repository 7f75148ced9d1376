{{/* Egress of both api and controller. */}}
{{- define "heartbeat-operator.egress" -}}
# DNS, in any namespace.
- ports:
    {{- range .Values.networkPolicy.egress.dnsPorts }}
    - port: {{ . }}
      protocol: UDP
    - port: {{ . }}
      protocol: TCP
    {{- end }}
{{- if include "heartbeat-operator.hasOwnDatabase" . }}
- to:
    - podSelector:
        matchLabels:
          {{- include "heartbeat-operator.selectorLabels" (list $ "postgresql") | nindent 10 }}
  ports:
    - port: postgresql
{{- else }}
- ports:
    - port: {{ .Values.networkPolicy.egress.databasePort }}
{{- end }}
{{- with .Values.networkPolicy.egress.rules }}
{{ toYaml . }}
{{- end }}
{{- end -}}
