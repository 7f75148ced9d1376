-- The numbers that stand for words, where the schema can be asked for them: test/db/checks/columns.test.ts compares them with domain/check.ts.
comment on column check_states.status is '0 new, 1 up, 2 down, 3 paused';
comment on column flips.from_status is '0 new, 1 up, 2 down, 3 paused';
comment on column flips.to_status is '0 new, 1 up, 2 down, 3 paused';
comment on column pings.type is '0 success, 1 start, 2 fail, 3 log';
comment on column pings.source is '0 http';
