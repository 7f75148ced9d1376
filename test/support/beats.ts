/** What a beat needs besides its database: of a process without a spool. */
export const WITHOUT_SPOOL = {
  self: () => ({ id: '0b7e0000-0000-4000-8000-000000000001', spool: null }),
  onSettled: () => {},
}
