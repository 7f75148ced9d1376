-- Written by `npm run db:schema` from what the migrations made; compared in test/db/schema.test.ts.

create table alerts (
  channel_id uuid not null,
  check_key bigint not null,
  labels jsonb not null,
  check_labels jsonb not null default '{}'::jsonb,
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
  created_by_kind text,
  created_by_id uuid,
  created_by_name text,
  constraint api_keys_created_by_kind_check CHECK ((created_by_kind = ANY (ARRAY['user'::text, 'api_key'::text]))),
  constraint api_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_prefix_key UNIQUE (prefix),
  constraint api_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint api_keys_scope_check CHECK ((scope = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text])))
);
CREATE INDEX api_keys_organization ON public.api_keys USING btree (organization_id, id);

create table audit_log (
  id uuid not null,
  organization_id uuid not null,
  project_id uuid,
  at timestamp with time zone not null,
  actor_kind text not null,
  actor_id uuid,
  actor_name text,
  action text not null,
  target_id uuid,
  target_name text,
  address text,
  detail jsonb not null default '{}'::jsonb,
  constraint audit_log_action_check CHECK ((action ~ '^[a-z_]+([.][a-z_]+)?$'::text)),
  constraint audit_log_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['user'::text, 'api_key'::text, 'controller'::text, 'link'::text, 'system'::text]))),
  constraint audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_action ON public.audit_log USING btree (organization_id, action, id);
CREATE INDEX audit_log_actor ON public.audit_log USING btree (organization_id, actor_id, id) WHERE (actor_id IS NOT NULL);
CREATE INDEX audit_log_organization ON public.audit_log USING btree (organization_id, id);
CREATE INDEX audit_log_project ON public.audit_log USING btree (organization_id, project_id, id) WHERE (project_id IS NOT NULL);
CREATE INDEX audit_log_target ON public.audit_log USING btree (organization_id, target_id, id) WHERE (target_id IS NOT NULL);

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
  next_digest_at timestamp with time zone,
  after_seconds integer not null default 0,
  constraint channels_after_seconds_check CHECK (((after_seconds >= 0) AND (after_seconds <= 86400))),
  constraint channels_check CHECK (((sealed IS NULL) = (organization_id IS NULL))),
  constraint channels_check1 CHECK (((sealed IS NULL) = (sealed_with IS NULL))),
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
  dialect text,
  grace_seconds integer not null,
  max_runtime_seconds integer,
  job_area text,
  resume_on_ping boolean not null default false,
  status smallint not null,
  since timestamp with time zone not null,
  reason text,
  last_ping_at timestamp with time zone,
  last_start_at timestamp with time zone,
  last_success_at timestamp with time zone,
  last_duration_ms integer,
  pings_total bigint not null default 0,
  expected_at timestamp with time zone,
  due_at timestamp with time zone,
  runs jsonb,
  incident_since timestamp with time zone,
  changes jsonb,
  notified smallint,
  quiet_at timestamp with time zone,
  stamped_at timestamp with time zone not null,
  wake_at timestamp with time zone,
  warn_exit_codes jsonb,
  last_outcome smallint,
  warned_at timestamp with time zone,
  failures_before_down smallint,
  misses_before_down smallint,
  remind_every_seconds integer,
  remind_on_each_run boolean,
  down_notified_at timestamp with time zone,
  reminders integer,
  consecutive_failures integer,
  consecutive_misses integer,
  pause jsonb,
  acknowledged jsonb,
  repeats jsonb,
  hold jsonb,
  escalation jsonb,
  constraint check_states_check_key_fkey FOREIGN KEY (check_key) REFERENCES checks(key) ON DELETE CASCADE,
  constraint check_states_dialect CHECK ((dialect = ANY (ARRAY['cron'::text, 'kubernetes'::text]))),
  constraint check_states_grace CHECK (((grace_seconds >= 0) AND (grace_seconds <= 31536000))),
  constraint check_states_max_runtime CHECK (((max_runtime_seconds >= 1) AND (max_runtime_seconds <= 31536000))),
  constraint check_states_period CHECK (((period_seconds >= 10) AND (period_seconds <= 31536000))),
  constraint check_states_pkey PRIMARY KEY (check_key),
  constraint check_states_schedule CHECK (((num_nonnulls(period_seconds, schedule) = 1) OR ((num_nonnulls(period_seconds, schedule) = 0) AND (job_area IS NOT NULL)))),
  constraint check_states_time_zone CHECK (((schedule IS NULL) = (time_zone IS NULL)))
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.05);
CREATE INDEX check_states_job_wake ON public.check_states USING btree (job_area, wake_at) WHERE ((job_area IS NOT NULL) AND (wake_at IS NOT NULL));
CREATE INDEX check_states_wake ON public.check_states USING btree (wake_at) WHERE ((job_area IS NULL) AND (wake_at IS NOT NULL));

create table checks (
  key bigint not null generated always as identity,
  id uuid not null,
  public_id uuid not null,
  project_id uuid not null,
  name text not null,
  slug text not null,
  slug_left_empty boolean not null default false,
  description text,
  tags text[] not null default '{}'::text[],
  labels jsonb not null default '{}'::jsonb,
  channels uuid[],
  managed_by text not null default 'api'::text,
  kubernetes_cluster text,
  kubernetes_namespace text,
  kubernetes_name text,
  kubernetes_suspend boolean,
  kubernetes_adopted boolean,
  kubernetes_namespace_uid text,
  kubernetes_cluster_uid text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null default now(),
  depends_on uuid[],
  constraint checks_channels_check CHECK (((cardinality(channels) <= 100) AND (array_position(channels, NULL::uuid) IS NULL))),
  constraint checks_depends_on_check CHECK ((((cardinality(depends_on) >= 1) AND (cardinality(depends_on) <= 20)) AND (array_position(depends_on, NULL::uuid) IS NULL))),
  constraint checks_description CHECK ((char_length(description) <= 4096)),
  constraint checks_id_key UNIQUE (id),
  constraint checks_labels CHECK (((labels = '{}'::jsonb) OR ((jsonb_typeof(labels) = 'object'::text) AND (jsonb_array_length(jsonb_path_query_array(labels, '$.keyvalue()'::jsonpath)) <= 32) AND (NOT jsonb_path_exists(labels, '$.keyvalue()?((!(@."key" like_regex "^((?=[^/]{1,253}/)[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$") || @."value".type() != "string") || !(@."value" like_regex "^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$"))'::jsonpath))))),
  constraint checks_managed_by_check CHECK ((managed_by = ANY (ARRAY['api'::text, 'kubernetes'::text]))),
  constraint checks_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint checks_pkey PRIMARY KEY (key),
  constraint checks_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint checks_project_id_slug_key UNIQUE (project_id, slug),
  constraint checks_public_id_key UNIQUE (public_id),
  constraint checks_slug CHECK (((char_length(slug) >= 1) AND (char_length(slug) <= 100))),
  constraint checks_tags CHECK (((cardinality(tags) = 0) OR ((cardinality(tags) <= 20) AND (array_position(tags, NULL::text) IS NULL) AND (array_to_string(tags, ','::text) ~ '^[A-Za-z0-9_.:/-]{1,50}(,[A-Za-z0-9_.:/-]{1,50})*$'::text) AND (array_to_string(tags, ','::text) !~ '(^|,)([^,]+),(.*,)?\2(,|$)'::text))))
);
CREATE INDEX checks_channels ON public.checks USING gin (channels) WHERE (channels IS NOT NULL);
CREATE INDEX checks_depends_on ON public.checks USING gin (depends_on) WHERE (depends_on IS NOT NULL);
CREATE INDEX checks_list ON public.checks USING btree (project_id, created_at, id);
CREATE UNIQUE INDEX checks_resource ON public.checks USING btree (kubernetes_cluster, kubernetes_namespace, kubernetes_name) WHERE (kubernetes_name IS NOT NULL);
CREATE INDEX checks_search ON public.checks USING gin (name gin_trgm_ops, slug gin_trgm_ops);

create table clusters (
  name text not null,
  uid text not null,
  seen_at timestamp with time zone not null,
  constraint clusters_pkey PRIMARY KEY (name)
);

create table cron_jobs (
  check_key bigint not null,
  name text not null,
  last_run jsonb,
  jobs jsonb not null default '{}'::jsonb,
  limit_from text,
  waiting_job text,
  waiting_detail text,
  waiting_for timestamp with time zone,
  constraint cron_jobs_check_key_fkey FOREIGN KEY (check_key) REFERENCES checks(key) ON DELETE CASCADE,
  constraint cron_jobs_limit_from_check CHECK ((length(limit_from) <= 100)),
  constraint cron_jobs_pkey PRIMARY KEY (check_key),
  constraint cron_jobs_waiting_detail_check CHECK ((length(waiting_detail) <= 1024))
);

create table declared_channels (
  kubernetes_cluster text not null,
  kubernetes_namespace text not null,
  kubernetes_name text not null,
  channel_id uuid not null,
  version text,
  deleted_at timestamp with time zone,
  constraint declared_channels_channel_id_key UNIQUE (channel_id),
  constraint declared_channels_pkey PRIMARY KEY (kubernetes_cluster, kubernetes_namespace, kubernetes_name)
);
CREATE INDEX declared_channels_deleted ON public.declared_channels USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);

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
  claimed_until timestamp with time zone,
  give_up_at timestamp with time zone not null,
  refused_at timestamp with time zone,
  last_status integer,
  last_error text,
  created_at timestamp with time zone not null,
  delivered_at timestamp with time zone,
  digest_id uuid,
  reason text,
  cause jsonb,
  constraint deliveries_check CHECK (((status = 0) = (next_attempt_at IS NOT NULL))),
  constraint deliveries_id_key UNIQUE (id),
  constraint deliveries_pkey PRIMARY KEY (event_id, channel_id),
  constraint deliveries_reason CHECK (((status = 3) = (reason IS NOT NULL)))
) with (fillfactor=75);
CREATE INDEX deliveries_channel ON public.deliveries USING btree (channel_id, id);
CREATE INDEX deliveries_check ON public.deliveries USING btree (check_id, id);
CREATE INDEX deliveries_due ON public.deliveries USING btree (channel_id, next_attempt_at) WHERE (status = 0);
CREATE INDEX deliveries_failed ON public.deliveries USING btree (organization_id, id) WHERE (status = 2);
CREATE INDEX deliveries_lane ON public.deliveries USING btree (channel_id, check_key, event_id) WHERE (status = 0);
CREATE INDEX deliveries_list ON public.deliveries USING btree (organization_id, id);
CREATE INDEX deliveries_suppressed ON public.deliveries USING btree (organization_id, id) WHERE (status = 3);

create table events (
  id uuid not null,
  check_key bigint,
  flip_id uuid,
  type text not null,
  data jsonb not null,
  subject jsonb,
  last_ping jsonb,
  last_body bytea,
  created_at timestamp with time zone not null,
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
  detail text,
  job text,
  constraint flips_pkey PRIMARY KEY (check_key, id)
);

create table gaps (
  id bigint not null generated always as identity,
  started_at timestamp with time zone not null,
  ended_at timestamp with time zone not null,
  spooled boolean default false,
  constraint gaps_pkey PRIMARY KEY (id)
);
CREATE INDEX gaps_ended ON public.gaps USING btree (ended_at);
CREATE INDEX gaps_open ON public.gaps USING btree (id) WHERE (spooled IS NULL);

create table installation (
  is_only boolean not null default true,
  id uuid not null default gen_random_uuid(),
  sealing_key bytea,
  constraint installation_is_only_check CHECK (is_only),
  constraint installation_pkey PRIMARY KEY (is_only),
  constraint installation_sealing_key_check CHECK ((octet_length(sealing_key) = 32))
);

create table login_addresses (
  user_id uuid not null,
  address text not null,
  last_at timestamp with time zone not null,
  constraint login_addresses_pkey PRIMARY KEY (user_id, address),
  constraint login_addresses_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX login_addresses_last ON public.login_addresses USING btree (last_at);

create unlogged table login_failures (
  bucket text not null,
  failed_at timestamp with time zone[] not null,
  last_at timestamp with time zone not null,
  constraint login_failures_pkey PRIMARY KEY (bucket)
);
CREATE INDEX login_failures_last ON public.login_failures USING btree (last_at);

create table organizations (
  id uuid not null,
  name text not null,
  created_at timestamp with time zone not null default now(),
  constraint organizations_pkey PRIMARY KEY (id)
);

create table ping_beats (
  id uuid not null,
  started_at timestamp with time zone not null,
  beat_at timestamp with time zone not null,
  has_stopped boolean not null default false,
  has_spool boolean not null,
  pending_since timestamp with time zone,
  refused_at timestamp with time zone,
  locked_checks bigint[] not null default '{}'::bigint[],
  constraint ping_beats_pkey PRIMARY KEY (id)
) with (fillfactor=50);

create table ping_bodies (
  check_key bigint not null,
  ping_id uuid not null,
  body bytea,
  is_truncated boolean not null default false,
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
  kubernetes_cluster text,
  kubernetes_namespace text,
  ping_key text,
  badge_key text default make_project_key(),
  created_at timestamp with time zone not null default now(),
  constraint projects_badge_key_check CHECK ((badge_key ~ '^[A-Za-z0-9]{22}$'::text)),
  constraint projects_badge_key_key UNIQUE (badge_key),
  constraint projects_check CHECK (((kubernetes_cluster IS NULL) = (kubernetes_namespace IS NULL))),
  constraint projects_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint projects_organization_id_slug_key UNIQUE (organization_id, slug),
  constraint projects_ping_key_check CHECK ((ping_key ~ '^[A-Za-z0-9]{22}$'::text)),
  constraint projects_ping_key_key UNIQUE (ping_key),
  constraint projects_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX projects_namespace ON public.projects USING btree (kubernetes_cluster, kubernetes_namespace) WHERE (kubernetes_namespace IS NOT NULL);

create table push_tokens (
  token text not null,
  check_key bigint not null,
  constraint push_tokens_check_key_fkey FOREIGN KEY (check_key) REFERENCES checks(key) ON DELETE CASCADE,
  constraint push_tokens_pkey PRIMARY KEY (token),
  constraint push_tokens_token_check CHECK ((token ~ '^[A-Za-z0-9_-]{1,64}$'::text))
);
CREATE INDEX push_tokens_check ON public.push_tokens USING btree (check_key);

create unlogged table rate_windows (
  bucket text not null,
  started_at timestamp with time zone not null,
  used integer not null,
  previous integer not null default 0,
  is_rejected boolean not null default false,
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

create unlogged table replicas (
  id uuid not null,
  host text not null,
  role text not null,
  version text not null,
  cluster text,
  leading_since timestamp with time zone,
  started_at timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  constraint replicas_pkey PRIMARY KEY (id)
);

create table reported_flips (
  check_key bigint not null,
  flip_id uuid not null,
  constraint reported_flips_check_key_fkey FOREIGN KEY (check_key) REFERENCES checks(key) ON DELETE CASCADE,
  constraint reported_flips_pkey PRIMARY KEY (check_key)
);

create table retained_checks (
  check_key bigint not null,
  kubernetes_cluster text not null,
  kubernetes_namespace text not null,
  kubernetes_name text not null,
  kubernetes_adopted boolean,
  kubernetes_namespace_uid text,
  kubernetes_cluster_uid text,
  published_kind text,
  published_name text,
  updated_at timestamp with time zone not null,
  retained_at timestamp with time zone not null,
  constraint retained_checks_check_key_fkey FOREIGN KEY (check_key) REFERENCES checks(key) ON DELETE CASCADE,
  constraint retained_checks_pkey PRIMARY KEY (check_key)
);
CREATE INDEX retained_checks_resource ON public.retained_checks USING btree (kubernetes_cluster, kubernetes_namespace, kubernetes_name);

create table schema_migrations (
  version integer not null,
  name text not null,
  applied_at timestamp with time zone not null default now(),
  constraint schema_migrations_pkey PRIMARY KEY (version)
);

create table seen_areas (
  area text not null,
  cluster text not null,
  seen_at timestamp with time zone not null,
  watched_since timestamp with time zone,
  held bigint[] not null default '{}'::bigint[],
  constraint seen_areas_pkey PRIMARY KEY (area)
);

create table service_beat (
  only_row boolean not null default true,
  beat_at timestamp with time zone,
  constraint service_beat_only_row_check CHECK (only_row),
  constraint service_beat_pkey PRIMARY KEY (only_row)
);

create table sessions (
  id uuid not null,
  user_id uuid not null,
  kind text not null,
  token_hash bytea,
  address text not null,
  created_at timestamp with time zone not null,
  last_used_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint sessions_kind_check CHECK ((kind = ANY (ARRAY['token'::text, 'dashboard'::text]))),
  constraint sessions_pkey PRIMARY KEY (id),
  constraint sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX sessions_expires ON public.sessions USING btree (expires_at);
CREATE UNIQUE INDEX sessions_token ON public.sessions USING btree (token_hash) WHERE (token_hash IS NOT NULL);
CREATE INDEX sessions_user ON public.sessions USING btree (user_id, created_at, id);

create table silences (
  id uuid not null,
  organization_id uuid not null,
  project_id uuid not null,
  check_id uuid,
  tag text,
  starts_at timestamp with time zone,
  ends_at timestamp with time zone,
  schedule text,
  time_zone text,
  dialect text,
  duration_seconds integer,
  comment text not null,
  created_by jsonb not null,
  created_at timestamp with time zone not null,
  kubernetes_cluster text,
  kubernetes_namespace text,
  kubernetes_name text,
  selector jsonb,
  constraint silences_check CHECK ((((num_nonnulls(starts_at, ends_at) = 2) AND (num_nonnulls(schedule, time_zone, dialect, duration_seconds) = 0)) OR ((num_nonnulls(starts_at, ends_at) = 0) AND (num_nonnulls(schedule, time_zone, dialect, duration_seconds) = 4)))),
  constraint silences_check1 CHECK ((num_nonnulls(kubernetes_cluster, kubernetes_namespace, kubernetes_name, selector) = ANY (ARRAY[0, 4]))),
  constraint silences_dialect_check CHECK ((dialect = ANY (ARRAY['cron'::text, 'kubernetes'::text]))),
  constraint silences_duration_seconds_check CHECK (((duration_seconds >= 10) AND (duration_seconds <= 2592000))),
  constraint silences_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint silences_pkey PRIMARY KEY (id),
  constraint silences_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX silences_project ON public.silences USING btree (project_id, created_at, id);
CREATE UNIQUE INDEX silences_resource ON public.silences USING btree (kubernetes_cluster, kubernetes_namespace, kubernetes_name) WHERE (kubernetes_name IS NOT NULL);

create table spools (
  id uuid not null,
  read_to bigint not null default 0,
  used_at timestamp with time zone not null default now(),
  constraint spools_pkey PRIMARY KEY (id)
) with (fillfactor=50);

create table tombstones (
  check_key bigint not null,
  id uuid not null,
  public_id uuid not null,
  project_id uuid not null,
  slug text not null,
  kubernetes_cluster text not null,
  kubernetes_namespace text not null,
  kubernetes_name text not null,
  kubernetes_adopted boolean,
  kubernetes_namespace_uid text,
  kubernetes_cluster_uid text,
  reason text,
  last_ping_at timestamp with time zone,
  last_start_at timestamp with time zone,
  last_success_at timestamp with time zone,
  last_duration_ms integer,
  pings_total bigint not null default 0,
  incident_since timestamp with time zone,
  stamped_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  deleted_at timestamp with time zone not null,
  last_outcome smallint,
  escalation jsonb,
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
  created_by_kind text,
  created_by_id uuid,
  created_by_name text,
  constraint users_created_by_kind_check CHECK ((created_by_kind = ANY (ARRAY['user'::text, 'api_key'::text]))),
  constraint users_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint users_pkey PRIMARY KEY (id),
  constraint users_scope_check CHECK ((scope = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text])))
);
CREATE UNIQUE INDEX users_email ON public.users USING btree (lower(email));
CREATE INDEX users_organization ON public.users USING btree (organization_id, id);

CREATE OR REPLACE FUNCTION public.make_project_key()
 RETURNS text
 LANGUAGE sql
AS $function$
  select string_agg(substr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', byte % 62 + 1, 1), '')
  from (
    select get_byte(uuid_send(u.uuid), place) as byte
    from (select gen_random_uuid() as uuid from generate_series(1, 4)) u, generate_series(0, 15) place
    where place not in (6, 8) and get_byte(uuid_send(u.uuid), place) < 248
    limit 22
  ) bytes
$function$
;
