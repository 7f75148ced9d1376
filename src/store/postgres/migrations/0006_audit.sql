-- Who did what, when, to what (design, section 3.6). It has no foreign keys: an entry outlives its actor, its target and
-- its project.
create table audit_log (
  id uuid primary key,
  organization_id uuid not null,
  project_id uuid,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('user', 'api_key', 'controller', 'system')),
  actor_id uuid,
  actor_name text,
  action text not null check (action ~ '^[a-z_]+([.][a-z_]+)?$'),
  target_id uuid,
  target_name text,
  address text,
  detail jsonb not null default '{}'
);
-- One for each filter of the list, newest first. The controller has no id.
create index audit_log_organization on audit_log (organization_id, id);
create index audit_log_project on audit_log (organization_id, project_id, id) where project_id is not null;
create index audit_log_action on audit_log (organization_id, action, id);
create index audit_log_actor on audit_log (organization_id, actor_id, id) where actor_id is not null;
create index audit_log_target on audit_log (organization_id, target_id, id) where target_id is not null;
