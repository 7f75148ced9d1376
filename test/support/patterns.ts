/** A time of the API. */
export const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

export const UUID = /^[0-9a-f-]{36}$/
