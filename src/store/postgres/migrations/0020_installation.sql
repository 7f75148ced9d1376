-- The id of this installation, in one row (design, section 6). The first process that asks for it makes it. A dump that is restored keeps it; a new database gets
-- another one. The operator records it in the status of each HeartbeatCheck and on its Lease, so that two installations do not take each other's resources.
create table installation (
  is_only boolean primary key default true check (is_only),
  id uuid not null default gen_random_uuid()
);
