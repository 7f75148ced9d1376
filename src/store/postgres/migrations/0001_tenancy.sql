-- Who uses the service: organizations with their projects, users, keys and sessions, and the limits on their calls.

create table organizations (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now()
);

-- 22 random characters A-Z, a-z, 0-9: 131 bits. The characters are made of bytes of random UUIDs, without the two bytes
-- that hold version and variant. A byte of 248 or more is left out, so that each character is as likely as the others.
-- Of the 56 bytes about 54 remain; fewer than 22 would violate the constraints of the keys.
create function make_project_key() returns text language sql volatile as $$
  select string_agg(substr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', byte % 62 + 1, 1), '')
  from (
    select get_byte(uuid_send(u.uuid), place) as byte
    from (select gen_random_uuid() as uuid from generate_series(1, 4)) u, generate_series(0, 15) place
    where place not in (6, 8) and get_byte(uuid_send(u.uuid), place) < 248
    limit 22
  ) bytes
$$;

create table projects (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  name text not null,
  slug text not null,
  -- A project that was made for a namespace is bound to it: its slug alone gives no access (design, section 6).
  kubernetes_cluster text,
  kubernetes_namespace text,
  -- That of the addresses of its pings by name; null: it has no such addresses.
  ping_key text unique check (ping_key ~ '^[A-Za-z0-9]{22}$'),
  -- That of the addresses of its badges; null: it was removed.
  badge_key text unique default make_project_key() check (badge_key ~ '^[A-Za-z0-9]{22}$'),
  created_at timestamptz not null default now(),
  unique (organization_id, slug),
  check ((kubernetes_cluster is null) = (kubernetes_namespace is null))
);
create unique index projects_namespace on projects (kubernetes_cluster, kubernetes_namespace) where kubernetes_namespace is not null;

-- `created_by_name` is the name at that moment, so that it outlives its bearer. Null for what the first start makes.
create table users (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  email text not null,
  password_hash text not null,
  scope text not null check (scope in ('read', 'write', 'admin')),
  created_at timestamptz not null default now(),
  created_by_kind text check (created_by_kind in ('user', 'api_key')),
  created_by_id uuid,
  created_by_name text
);
-- One account for an address, whatever its capitals: the address alone names the account at log-in.
create unique index users_email on users (lower(email));
create index users_organization on users (organization_id, id);

create table api_keys (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  project_id uuid references projects (id) on delete cascade,
  name text not null,
  prefix text not null unique,
  secret_hash bytea not null,
  scope text not null check (scope in ('read', 'write', 'admin')),
  expires_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  created_by_kind text check (created_by_kind in ('user', 'api_key')),
  created_by_id uuid,
  created_by_name text
);
create index api_keys_organization on api_keys (organization_id, id);

-- A session is one log-in. One of the dashboard is found by the hash of its cookie's token; the id of one of the kind
-- token is the family of its refresh tokens.
create table sessions (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  kind text not null check (kind in ('token', 'dashboard')),
  token_hash bytea,
  -- Network address without a port.
  address text not null,
  created_at timestamptz not null,
  last_used_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_user on sessions (user_id, created_at, id);
create index sessions_expires on sessions (expires_at);
create unique index sessions_token on sessions (token_hash) where token_hash is not null;

-- Each refresh spends its token and adds the next. A spent token that comes back ends the family.
create table refresh_tokens (
  token_hash bytea primary key,
  family_id uuid not null,
  user_id uuid not null references users (id) on delete cascade,
  expires_at timestamptz not null,
  spent_at timestamptz,
  created_at timestamptz not null default now()
);
create index refresh_tokens_family on refresh_tokens (family_id);
create index refresh_tokens_user on refresh_tokens (user_id);

-- The throttle of log-ins: the instants of the latest failures of an account, an address, and both. The table is worth
-- nothing after a crash, so it is unlogged.
create unlogged table login_failures (
  bucket text primary key,
  failed_at timestamptz[] not null,
  last_at timestamptz not null
);
create index login_failures_last on login_failures (last_at);

-- Where users have logged in from. An IPv6 address stands for its /64.
create table login_addresses (
  user_id uuid not null references users (id) on delete cascade,
  address text not null,
  last_at timestamptz not null,
  primary key (user_id, address)
);
create index login_addresses_last on login_addresses (last_at);

-- The management calls of an organization, counted in a sliding window by all replicas (design, section 3.2).
-- Worth nothing after a crash, so unlogged.
create unlogged table rate_windows (
  bucket text primary key,
  started_at timestamptz not null,
  used int not null,
  -- The calls of the window before this one.
  previous int not null default 0,
  -- The last call was rejected.
  is_rejected boolean not null default false
);
