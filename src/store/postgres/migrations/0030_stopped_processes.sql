-- A process that stops keeps its row: its beats explain when pings were stored, and nothing waits for it any more.
alter table ping_beats add column has_stopped boolean not null default false;
