-- Channels that HeartbeatChannels declare (design, section 5), and the public key that their settings are sealed for.

-- A row outlives its channel for some days, so that a resource that is created again keeps the id of its channel.
create table declared_channels (
  kubernetes_cluster text not null,
  kubernetes_namespace text not null,
  kubernetes_name text not null,
  channel_id uuid not null unique,
  version text,
  deleted_at timestamptz,
  primary key (kubernetes_cluster, kubernetes_namespace, kubernetes_name)
);
create index declared_channels_deleted on declared_channels (deleted_at) where deleted_at is not null;

alter table installation add column sealing_key bytea check (octet_length(sealing_key) = 32);

comment on column declared_channels.version is
  'of the resource, its Secret and the key, as the channel was written last; null: it was not';
comment on column declared_channels.deleted_at is 'when the resource was deleted, and the channel with it; null: it was not';
comment on column installation.sealing_key is
  'public key (X25519) for processes without SECRET_KEY (channels/seal-box.ts); null: no api role has saved one';
