-- Written by `npm run db:schema` from what the migrations made; compared in test/db/schema.test.ts.

create table alerts (
  channel_id uuid not null,
  check_key bigint not null,
  labels jsonb not null,
  annotations jsonb not null,
  starts_at timestamp with time zone not null,
  resolved_at timestamp with time zone,
  tell_at timestamp with time zone not null,
  constraint alerts_pkey PRIMARY KEY (channel_id, check_key)
);
CREATE INDEX alerts_check ON public.alerts USING btree (check_key);
CREATE INDEX alerts_tell ON public.alerts USING btree (tell_at);

create table api_keys (
  id uuid not null,
  organization_id uuid not null,
  project_id uuid,
  name text not null,
  prefix text not null,
  secret_hash bytea not null,
  scope text not null,
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  constraint api_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_prefix_key UNIQUE (prefix),
  constraint api_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint api_keys_scope_check CHECK ((scope = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text])))
);
CREATE INDEX api_keys_organization ON public.api_keys USING btree (organization_id, id);

create table channels (
  id uuid not null,
  organization_id uuid,
  project_id uuid,
  kind text not null,
  name text not null,
  sealed bytea,
  sealed_with bytea,
  event_types text[] not null,
  muted boolean not null default false,
  created_at timestamp with time zone not null,
  seen_at timestamp with time zone,
  constraint channels_check CHECK (((sealed IS NULL) = (organization_id IS NULL))),
  constraint channels_check1 CHECK (((sealed IS NULL) = (sealed_with IS NULL))),
  constraint channels_kind_check CHECK ((kind = ANY (ARRAY['webhook'::text, 'alertmanager'::text, 'slack'::text, 'email'::text]))),
  constraint channels_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint channels_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint channels_pkey PRIMARY KEY (id),
  constraint channels_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX channels_organization ON public.channels USING btree (organization_id, created_at, id);
CREATE INDEX channels_project ON public.channels USING btree (project_id);

create table check_states (
  check_key bigint not null,
  period_seconds integer,
  schedule text,
  time_zone text,
  grace_seconds integer not null,
  max_runtime_seconds integer,
  status smallint not null,
  since timestamp with time zone not null,
  last_ping_at timestamp with time zone,
  last_start_at timestamp with time zone,
  expected_at timestamp with time zone,
  due_at timestamp with time zone,
  runs jsonb,
  stamped_at timestamp with time zone not null,
  wake_at timestamp with time zone,
  last_success_at timestamp with time zone,
  last_duration_ms integer,
  constraint check_states_check CHECK (((period_seconds IS NULL) <> (schedule IS NULL))),
  constraint check_states_check1 CHECK (((schedule IS NULL) = (time_zone IS NULL))),
  constraint check_states_check_key_fkey FOREIGN KEY (check_key) REFERENCES checks(key) ON DELETE CASCADE,
  constraint check_states_grace CHECK (((grace_seconds >= 0) AND (grace_seconds <= 31536000))),
  constraint check_states_max_runtime CHECK (((max_runtime_seconds >= 1) AND (max_runtime_seconds <= 31536000))),
  constraint check_states_period CHECK (((period_seconds >= 10) AND (period_seconds <= 31536000))),
  constraint check_states_pkey PRIMARY KEY (check_key)
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.05);
CREATE INDEX check_states_wake ON public.check_states USING btree (wake_at) WHERE (wake_at IS NOT NULL);

create table checks (
  key bigint not null generated always as identity,
  id uuid not null,
  public_id uuid not null,
  project_id uuid not null,
  name text not null,
  slug text not null,
  description text,
  managed_by text not null default 'api'::text,
  kubernetes_cluster text,
  kubernetes_namespace text,
  kubernetes_name text,
  kubernetes_suspend boolean,
  created_at timestamp with time zone not null,
  tags text[] not null default '{}'::text[],
  constraint checks_description CHECK ((char_length(description) <= 4096)),
  constraint checks_id_key UNIQUE (id),
  constraint checks_managed_by_check CHECK ((managed_by = ANY (ARRAY['api'::text, 'kubernetes'::text]))),
  constraint checks_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint checks_pkey PRIMARY KEY (key),
  constraint checks_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint checks_project_id_slug_key UNIQUE (project_id, slug),
  constraint checks_public_id_key UNIQUE (public_id),
  constraint checks_slug CHECK (((char_length(slug) >= 1) AND (char_length(slug) <= 100))),
  constraint checks_tags CHECK (((cardinality(tags) = 0) OR ((cardinality(tags) <= 20) AND (array_position(tags, NULL::text) IS NULL) AND (array_to_string(tags, ','::text) ~ '^[A-Za-z0-9_.:/-]{1,50}(,[A-Za-z0-9_.:/-]{1,50})*$'::text) AND (array_to_string(tags, ','::text) !~ '(^|,)([^,]+),(.*,)?\2(,|$)'::text))))
);
CREATE INDEX checks_list ON public.checks USING btree (project_id, created_at, id);
CREATE UNIQUE INDEX checks_resource ON public.checks USING btree (kubernetes_cluster, kubernetes_namespace, kubernetes_name) WHERE (kubernetes_name IS NOT NULL);

create table clusters (
  name text not null,
  uid text not null,
  seen_at timestamp with time zone not null,
  constraint clusters_pkey PRIMARY KEY (name)
);

create table deliveries (
  event_id uuid not null,
  channel_id uuid not null,
  id uuid not null,
  check_key bigint,
  organization_id uuid not null,
  project_id uuid,
  check_id uuid,
  type text not null,
  status smallint not null default 0,
  attempts integer not null default 0,
  attempts_before integer not null default 0,
  next_attempt_at timestamp with time zone,
  give_up_at timestamp with time zone not null,
  last_status integer,
  last_error text,
  created_at timestamp with time zone not null,
  delivered_at timestamp with time zone,
  claimed_until timestamp with time zone,
  constraint deliveries_check CHECK (((status = 0) = (next_attempt_at IS NOT NULL))),
  constraint deliveries_id_key UNIQUE (id),
  constraint deliveries_pkey PRIMARY KEY (event_id, channel_id)
) with (fillfactor=75);
CREATE INDEX deliveries_channel ON public.deliveries USING btree (channel_id, id);
CREATE INDEX deliveries_check ON public.deliveries USING btree (check_id, id);
CREATE INDEX deliveries_due ON public.deliveries USING btree (channel_id, next_attempt_at) WHERE (status = 0);
CREATE INDEX deliveries_failed ON public.deliveries USING btree (organization_id, id) WHERE (status = 2);
CREATE INDEX deliveries_lane ON public.deliveries USING btree (channel_id, check_key, event_id) WHERE (status = 0);
CREATE INDEX deliveries_list ON public.deliveries USING btree (organization_id, id);

create table events (
  id uuid not null,
  check_key bigint,
  flip_id uuid,
  type text not null,
  data jsonb not null,
  created_at timestamp with time zone not null,
  subject jsonb,
  last_ping jsonb,
  last_body bytea,
  constraint events_pkey PRIMARY KEY (id)
);
CREATE INDEX events_check ON public.events USING btree (check_key, id);

create unlogged table exporter (
  only_row boolean not null default true,
  holder uuid not null,
  expires_at timestamp with time zone not null,
  constraint exporter_only_row_check CHECK (only_row),
  constraint exporter_pkey PRIMARY KEY (only_row)
);

create table flips (
  id uuid not null,
  check_key bigint not null,
  at timestamp with time zone not null,
  detected_at timestamp with time zone not null,
  from_status smallint,
  to_status smallint not null,
  reason text not null,
  ping_id uuid,
  constraint flips_pkey PRIMARY KEY (check_key, id)
);

create table gaps (
  id bigint not null generated always as identity,
  started_at timestamp with time zone not null,
  ended_at timestamp with time zone not null,
  constraint gaps_pkey PRIMARY KEY (id)
);
CREATE INDEX gaps_ended ON public.gaps USING btree (ended_at);

create table organizations (
  id uuid not null,
  name text not null,
  created_at timestamp with time zone not null default now(),
  constraint organizations_pkey PRIMARY KEY (id)
);

create table ping_bodies (
  check_key bigint not null,
  ping_id uuid not null,
  body bytea not null,
  constraint ping_bodies_pkey PRIMARY KEY (check_key, ping_id)
);

create table pings (
  id uuid not null,
  check_key bigint not null,
  type smallint not null,
  exit_code smallint,
  duration_ms integer,
  run_id uuid,
  source smallint not null,
  created_at timestamp with time zone not null,
  constraint pings_pkey PRIMARY KEY (check_key, id)
);
CREATE UNIQUE INDEX pings_run ON public.pings USING btree (check_key, run_id, type) WHERE (run_id IS NOT NULL);

create table projects (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  slug text not null,
  created_at timestamp with time zone not null default now(),
  kubernetes_cluster text,
  kubernetes_namespace text,
  constraint projects_check CHECK (((kubernetes_cluster IS NULL) = (kubernetes_namespace IS NULL))),
  constraint projects_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint projects_organization_id_slug_key UNIQUE (organization_id, slug),
  constraint projects_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX projects_namespace ON public.projects USING btree (kubernetes_cluster, kubernetes_namespace) WHERE (kubernetes_namespace IS NOT NULL);

create unlogged table rate_windows (
  bucket text not null,
  started_at timestamp with time zone not null,
  used integer not null,
  constraint rate_windows_pkey PRIMARY KEY (bucket)
);

create table refresh_tokens (
  token_hash bytea not null,
  family_id uuid not null,
  user_id uuid not null,
  expires_at timestamp with time zone not null,
  spent_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  constraint refresh_tokens_pkey PRIMARY KEY (token_hash),
  constraint refresh_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX refresh_tokens_family ON public.refresh_tokens USING btree (family_id);
CREATE INDEX refresh_tokens_user ON public.refresh_tokens USING btree (user_id);

create table schema_migrations (
  version integer not null,
  name text not null,
  applied_at timestamp with time zone not null default now(),
  constraint schema_migrations_pkey PRIMARY KEY (version)
);

create table service_beat (
  only_row boolean not null default true,
  beat_at timestamp with time zone,
  constraint service_beat_only_row_check CHECK (only_row),
  constraint service_beat_pkey PRIMARY KEY (only_row)
);

create table tombstones (
  check_key bigint not null,
  id uuid not null,
  public_id uuid not null,
  project_id uuid not null,
  slug text not null,
  kubernetes_cluster text not null,
  kubernetes_namespace text not null,
  kubernetes_name text not null,
  last_ping_at timestamp with time zone,
  last_start_at timestamp with time zone,
  stamped_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  deleted_at timestamp with time zone not null,
  last_success_at timestamp with time zone,
  last_duration_ms integer,
  constraint tombstones_id_key UNIQUE (id),
  constraint tombstones_kubernetes_cluster_kubernetes_namespace_kubernet_key UNIQUE (kubernetes_cluster, kubernetes_namespace, kubernetes_name),
  constraint tombstones_pkey PRIMARY KEY (check_key),
  constraint tombstones_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint tombstones_public_id_key UNIQUE (public_id)
);
CREATE INDEX tombstones_deleted ON public.tombstones USING btree (deleted_at);
CREATE INDEX tombstones_project ON public.tombstones USING btree (project_id);

create table users (
  id uuid not null,
  organization_id uuid not null,
  email text not null,
  password_hash text not null,
  scope text not null,
  created_at timestamp with time zone not null default now(),
  constraint users_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint users_pkey PRIMARY KEY (id),
  constraint users_scope_check CHECK ((scope = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text])))
);
CREATE UNIQUE INDEX users_email ON public.users USING btree (lower(email));
CREATE INDEX users_organization ON public.users USING btree (organization_id, id);
