{{- define "hookonce.name" -}}
{{- if contains "hookonce" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-hookonce" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "hookonce.selector" -}}
app.kubernetes.io/name: hookonce
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hookonce.labels" -}}
{{ include "hookonce.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "hookonce.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag }}{{ end }}
{{- end }}

{{- define "hookonce.configMap" -}}
{{- .Values.existingConfigMap | default (include "hookonce.name" .) }}
{{- end }}

{{- define "hookonce.claim" -}}
{{- .Values.store.sqlite.existingClaim | default (include "hookonce.name" .) }}
{{- end }}

{{/* What the admin listener speaks. */}}
{{- define "hookonce.scheme" -}}
{{- if or (get .Values.config "admin_tls") (.Values.existingConfig | default dict).adminTLS }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* The port for other cells; empty if there are none. */}}
{{- define "hookonce.cellPort" -}}
{{- if or (get .Values.config "cell") (.Values.existingConfig | default dict).cell }}8444{{ end }}
{{- end }}

{{/* What cannot work is refused here, before the cluster sees any of it. */}}
{{- define "hookonce.check" -}}
{{- $v := .Values }}
{{- if not $v.image.repository }}{{ fail "image.repository: name the repository that you pushed the image to" }}{{ end }}
{{- if eq (empty $v.image.tag) (empty $v.image.digest) }}{{ fail "image: give a tag or a digest, and not both" }}{{ end }}
{{- if and $v.store.sqlite.enabled $v.store.postgres.secret }}{{ fail "store: use postgres or sqlite, and not both" }}{{ end }}
{{- if not (or $v.store.sqlite.enabled $v.store.postgres.secret) }}{{ fail "store: name the Secret with the URL of your database (store.postgres.secret), or enable store.sqlite" }}{{ end }}
{{- if and $v.store.sqlite.enabled (gt (int $v.replicas) 1) }}{{ fail "replicas: a file of SQLite has one gateway; set replicas to 1, or use store.postgres" }}{{ end }}
{{- if and $v.store.sqlite.enabled ($v.store.postgres.read | default dict).secret }}{{ fail "store.postgres.read: a file of SQLite has no standby; leave it out, or use store.postgres" }}{{ end }}
{{- if ge (int $v.shutdownDelaySeconds) (int $v.shutdownTimeoutSeconds) }}{{ fail "shutdownTimeoutSeconds: it includes the delay, so it must be longer than shutdownDelaySeconds" }}{{ end }}
{{- if eq (empty $v.config) (empty $v.existingConfigMap) }}{{ fail "config: write the configuration there, or name a ConfigMap that has it (existingConfigMap), and not both" }}{{ end }}
{{- if and (empty $v.existingConfigMap) (or ($v.existingConfig | default dict).adminTLS ($v.existingConfig | default dict).cell) }}{{ fail "existingConfig: it is for existingConfigMap; what config has, the chart sees by itself" }}{{ end }}
{{- if and $v.store.sqlite.enabled (include "hookonce.cellPort" .) }}{{ fail "config.cell: cells need a database each; use store.postgres, or leave cell out" }}{{ end }}
{{- range $key := list "listen" "admin" "cell_listen" "store" "store_read" "shutdown_delay" "shutdown_timeout" }}
{{- if hasKey $v.config $key }}{{ fail (printf "config.%s: the chart sets it; leave it out" $key) }}{{ end }}
{{- end }}
{{- if and $v.config (not $v.config.admin_tokens) }}{{ fail "config.admin_tokens: probes and Prometheus ask from other machines, so the admin listener is open, and needs tokens" }}{{ end }}
{{- range $i, $channel := dig "alerts" "notify" list (default dict $v.config) }}{{ include "hookonce.reference" (list (printf "config.alerts.notify[%d].url" $i) (get $channel "url")) }}{{ end }}
{{- include "hookonce.references" (list "config" $v.config) }}
{{- if and $v.serviceMonitor.enabled (not (and $v.serviceMonitor.token.secret $v.serviceMonitor.token.key)) }}{{ fail "serviceMonitor.token: name the Secret, and the key in it, that has one of admin_tokens" }}{{ end }}
{{- $names := dict }}
{{- range $v.secrets }}
{{- if hasKey $names .name }}{{ fail (printf "secrets: %s is there twice" .name) }}{{ end }}
{{- $_ := set $names .name true }}
{{- end }}
{{- end }}

{{/* A ConfigMap is no place for a secret: whatever is called one is a reference, and a URL has no user, because a key of an API may
stand there as well as a password. A specification has none: it says what its sender's secrets are, and where a token stands. */}}
{{- define "hookonce.references" -}}
{{- $path := index . 0 }}{{ $value := index . 1 }}
{{- if kindIs "map" $value }}
{{- range $key, $inner := omit $value "spec" }}
{{- if has $key (list "secret" "secrets" "token" "app_secret" "app_secrets" "password" "heartbeat") }}{{ include "hookonce.reference" (list (printf "%s.%s" $path $key) $inner) }}{{ end }}
{{- if and (has $key (list "url" "to" "app_url" "endpoint")) (kindIs "string" $inner) (regexMatch "^https?://[^/?#]*@" (toString $inner)) }}{{ fail (printf "%s.%s: the URL has a user, or a password, and a ConfigMap is readable by many; leave them out, and for a destination put Basic and the base64 of user:password into a Secret, name that under secrets, and write headers: {Authorization: \"file:/run/secrets/hookonce/<name>\"}" $path $key) }}{{ end }}
{{- if and (eq $key "http_signature") (kindIs "map" $inner) }}
{{- range $name, $text := $inner }}{{ include "hookonce.reference" (list (printf "%s.http_signature.%s" $path $name) $text) }}{{ end }}
{{- end }}
{{- if and (eq $key "headers") (kindIs "map" $inner) }}
{{- range $name, $text := $inner }}
{{- if regexMatch "(?i)auth|cookie|credential|key|pass|secret|session|signature|token" $name }}{{ include "hookonce.reference" (list (printf "%s.headers.%s" $path $name) $text) }}{{ end }}
{{- end }}
{{- end }}
{{- include "hookonce.references" (list (printf "%s.%s" $path $key) $inner) }}
{{- end }}
{{- else if kindIs "slice" $value }}
{{- range $i, $inner := $value }}{{ include "hookonce.references" (list (printf "%s[%d]" $path $i) $inner) }}{{ end }}
{{- end }}
{{- end }}

{{- define "hookonce.reference" -}}
{{- $path := index . 0 }}{{ $value := index . 1 }}
{{- if kindIs "slice" $value }}
{{- range $i, $inner := $value }}{{ include "hookonce.reference" (list (printf "%s[%d]" $path $i) $inner) }}{{ end }}
{{- else if not (kindIs "map" $value) }}
{{- if not (or (hasPrefix "file:" (toString $value)) (hasPrefix "env:" (toString $value))) }}{{ fail (printf "%s: this is the secret itself, and a ConfigMap is readable by many; put it into a Secret, name that under secrets, and write file:/run/secrets/hookonce/<name> here" $path) }}{{ end }}
{{- end }}
{{- end }}
