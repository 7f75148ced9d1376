-- A project that was made for a namespace is bound to it: its slug alone opens it to nobody (design, section 6).
alter table projects
  add column kubernetes_cluster text,
  add column kubernetes_namespace text,
  add check ((kubernetes_cluster is null) = (kubernetes_namespace is null));
create unique index projects_namespace on projects (kubernetes_cluster, kubernetes_namespace) where kubernetes_namespace is not null;

-- Who reconciles under a cluster's name. uid: that of the namespace kube-system, which tells two clusters under one name apart.
create table clusters (
  name text primary key,
  uid text not null,
  seen_at timestamptz not null
);

-- What is left of a check whose resource was deleted: its place in the history, and all that a re-created resource gets back.
-- The rows of checks and check_states are gone, so no read has to leave a deleted check out.
create table tombstones (
  check_key bigint primary key,
  id uuid not null unique,
  public_id uuid not null unique,
  project_id uuid not null references projects (id) on delete cascade,
  slug text not null,
  kubernetes_cluster text not null,
  kubernetes_namespace text not null,
  kubernetes_name text not null,
  last_ping_at timestamptz,
  last_start_at timestamptz,
  stamped_at timestamptz not null,
  created_at timestamptz not null,
  deleted_at timestamptz not null,
  unique (kubernetes_cluster, kubernetes_namespace, kubernetes_name)
);
create index tombstones_project on tombstones (project_id);
create index tombstones_deleted on tombstones (deleted_at);

-- The same limits as domain/check.ts and the CRD have: what no edge lets in is not let in by SQL either.
alter table check_states
  add constraint check_states_period check (period_seconds between 10 and 31536000),
  add constraint check_states_grace check (grace_seconds between 0 and 31536000),
  add constraint check_states_max_runtime check (max_runtime_seconds between 1 and 31536000);
alter table checks
  add constraint checks_name check (char_length(name) between 1 and 100),
  add constraint checks_slug check (char_length(slug) between 1 and 100),
  add constraint checks_description check (char_length(description) <= 4096);
