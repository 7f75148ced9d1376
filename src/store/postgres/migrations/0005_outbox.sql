-- Notifications: the events, the channels, and the deliveries of events to channels.

-- Where events go. `sealed`: the settings, encrypted under the key that `sealed_with` names (channels/seal.ts), since an
-- address alone may be a credential. organization_id null: the channel of the whole installation, whose settings are
-- configuration.
create table channels (
  id uuid primary key,
  organization_id uuid references organizations (id),
  project_id uuid references projects (id) on delete cascade,
  kind text not null check (kind in ('webhook', 'alertmanager', 'slack', 'email')),
  name text not null check (char_length(name) between 1 and 100),
  sealed bytea,
  sealed_with bytea,
  event_types text[] not null,
  muted boolean not null default false,
  created_at timestamptz not null,
  -- Of the channel of the installation: when a replica last said that it is configured.
  seen_at timestamptz,
  -- When the next digest may be sent; null, and in the past: at once.
  next_digest_at timestamptz,
  check ((sealed is null) = (organization_id is null)),
  check ((sealed is null) = (sealed_with is null))
);
create index channels_organization on channels (organization_id, created_at, id);
create index channels_project on channels (project_id);

-- Written in the transaction of its flip. All that a delivery says is in the event: by the time it goes out the check may
-- be up again, renamed or gone.
create table events (
  id uuid primary key,
  check_key bigint,
  flip_id uuid,
  type text not null,
  data jsonb not null,
  -- {"id", "name", "slug", "project": {"id", "slug"}, "kubernetes": {"cluster", "namespace", "name"} or null}
  subject jsonb,
  -- {"type", "exit_code", "duration_ms", "created_at"}
  last_ping jsonb,
  -- The end of its body.
  last_body bytea,
  created_at timestamptz not null
);
create index events_check on events (check_key, id);

-- One event on its way to one channel: the outbox. Of each check and channel only the oldest pending one is sent; the
-- others wait behind it. No foreign keys, as in the history: a channel's removal must not stop a ping.
create table deliveries (
  event_id uuid not null,
  channel_id uuid not null,
  -- Of its event's time, so that ids are in the order of time.
  id uuid not null unique,
  check_key bigint,
  -- The check's when it happened: whose it is to see.
  organization_id uuid not null,
  project_id uuid,
  check_id uuid,
  type text not null,
  -- 0 pending, 1 delivered, 2 failed
  status smallint not null default 0,
  -- Counted when it is claimed: no crash gets an attempt for nothing.
  attempts int not null default 0,
  -- Of these since it was made or asked for again.
  attempts_before int not null default 0,
  next_attempt_at timestamptz,
  -- Set while a replica sends the delivery. In no index, so that taking a delivery changes none.
  claimed_until timestamptz,
  give_up_at timestamptz not null,
  -- Since when the receiver has refused each attempt with a response that it may also give while it restarts
  -- (delivery/http-outcome.ts).
  refused_at timestamptz,
  last_status int,
  last_error text,
  created_at timestamptz not null,
  delivered_at timestamptz,
  -- The digest that it was a part of.
  digest_id uuid,
  primary key (event_id, channel_id),
  check ((status = 0) = (next_attempt_at is not null))
) with (fillfactor = 75);
create index deliveries_due on deliveries (channel_id, next_attempt_at) where status = 0;
create index deliveries_lane on deliveries (channel_id, check_key, event_id) where status = 0;
create index deliveries_list on deliveries (organization_id, id);
-- Of those that are no longer pending only the failed ones are looked for by that. Pending ones are few.
create index deliveries_failed on deliveries (organization_id, id) where status = 2;
create index deliveries_channel on deliveries (channel_id, id);
create index deliveries_check on deliveries (check_id, id);

-- What an Alertmanager believes by our word: sent again before it forgets, and taken back when it is no longer true.
create table alerts (
  channel_id uuid not null,
  check_key bigint not null,
  labels jsonb not null,
  -- The labels of the check when its alert began, which the alert keeps.
  check_labels jsonb not null default '{}',
  annotations jsonb not null,
  starts_at timestamptz not null,
  -- Null: firing. Resolved alerts are sent for a while, for peers that were away.
  resolved_at timestamptz,
  -- When the alert is sent next. The replica that is about to send the alert moves this time on.
  tell_at timestamptz not null,
  primary key (channel_id, check_key)
);
create index alerts_tell on alerts (tell_at);
create index alerts_check on alerts (check_key);
