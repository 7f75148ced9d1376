-- The processes of the installation, for the page of the service's health (design, section 8). Each writes its row every few seconds. Worth nothing after
-- a crash of PostgreSQL, so unlogged.
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
