-- The kinds of channels are a list of the code (domain/channel.ts): a new kind needs no migration.
alter table channels drop constraint channels_kind_check;
