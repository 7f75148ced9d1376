-- Pings that were stored on disk while the database was unavailable (design, section 10).

-- Up to which position each spool is recorded. A spool outlives the process that wrote it; its row is kept for a year after its last use.
create table spools (
  id uuid primary key,
  read_to bigint not null default 0,
  used_at timestamptz not null default now()
) with (fillfactor = 50);

-- The api processes: whether their pings of a gap are spooled, and recorded. A process that stops removes its row.
create table ping_beats (
  id uuid primary key,
  -- Its first beat.
  started_at timestamptz not null,
  beat_at timestamptz not null,
  has_spool boolean not null,
  -- Since when pings wait in its spool; null: none waits.
  pending_since timestamptz,
  -- When it refused a ping last because its spool was full or broken.
  refused_at timestamptz
) with (fillfactor = 50);

-- Whether all pings of the gap were spooled, so that it hides nothing. Null: not yet known. Replicas of the release before write false.
alter table gaps add column spooled boolean default false;
create index gaps_open on gaps (id) where spooled is null;
