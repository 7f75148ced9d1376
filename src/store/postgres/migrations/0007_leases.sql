-- The installation, its processes, and what one of them holds at a time.

-- The id of this installation, in one row (design, section 6). The first process that asks for it makes it. A dump that is
-- restored keeps it; a new database gets another one. The operator records it in the status of each HeartbeatCheck and on
-- its Lease, so that two installations do not take each other's resources.
create table installation (
  is_only boolean primary key default true check (is_only),
  id uuid not null default gen_random_uuid()
);

-- Who reconciles under a cluster's name. uid: that of the namespace kube-system, which tells two clusters under one name
-- apart.
create table clusters (
  name text primary key,
  uid text not null,
  seen_at timestamptz not null
);

-- The processes of the installation, for the page of the service's health (design, section 8). Each writes its row every
-- few seconds. Worth nothing after a crash of PostgreSQL, so unlogged.
create unlogged table replicas (
  id uuid primary key,
  host text not null,
  role text not null,
  version text not null,
  cluster text,
  leading_since timestamptz,
  started_at timestamptz not null,
  seen_at timestamptz not null
);

-- Who says in /metrics how each check is doing: one replica at a time, as long as its row is young. Unlogged as well.
create unlogged table exporter (
  only_row boolean primary key default true check (only_row),
  holder uuid not null,
  expires_at timestamptz not null
);
