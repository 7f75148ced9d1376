-- How a resource came to its check, and where it is: an adopted check stays in its project, and with REVIVAL=uid a check comes back in its own namespace only
-- (design, section 6). Null: unknown, or not adopted.
alter table checks
  add column kubernetes_adopted boolean,
  add column kubernetes_namespace_uid text,
  add column kubernetes_cluster_uid text;
alter table tombstones
  add column kubernetes_adopted boolean,
  add column kubernetes_namespace_uid text,
  add column kubernetes_cluster_uid text;

-- The resource that declared a check until it was deleted with deletionPolicy Retain. Declared again it has the check back, unless that was changed through the API:
-- updated_at is that of the check at the time. published_*: the Secret or ConfigMap that keeps the URL.
create table retained_checks (
  check_key bigint primary key references checks (key) on delete cascade,
  kubernetes_cluster text not null,
  kubernetes_namespace text not null,
  kubernetes_name text not null,
  kubernetes_namespace_uid text,
  kubernetes_cluster_uid text,
  published_kind text,
  published_name text,
  updated_at timestamptz not null,
  retained_at timestamptz not null
);
create index retained_checks_resource on retained_checks (kubernetes_cluster, kubernetes_namespace, kubernetes_name);
