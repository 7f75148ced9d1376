/**
 * What a process takes of its clients at the HTTP edge. A test compares docs/security/threats.md with these numbers.
 */

/** A head. */
export const HEAD_BYTES = 16_384
/** All lines of a header that this service or one of its libraries parses. */
export const HEADER_BYTES = 1_024
/** All lines of a header with credentials: a credential can be a token of an issuer. */
export const CREDENTIAL_BYTES = 12_288
/** How long a head may take to arrive, and how long a whole request may take. */
export const HEAD_MS = 10_000
export const REQUEST_MS = 30_000

/** One address holds this part of the connections of a port at most. */
export const ADDRESS_PART = 4
/** Requests of a connection that wait for their responses. Our clients send one request at a time. */
export const UNANSWERED = 16
/** Requests after these are left alone. Beyond them the connection ends at once, with no more responses. */
export const IGNORED = 100

/** All bodies that are being read, or wait for their response. */
export const BODIES_BYTES = 33_554_432
/** Parameters of a query, or fields of a form: many times what any request needs. Each costs as much as a long one. */
export const PARAMETERS = 1_000

/** How long a client of the management API, and a scrape, may read nothing. */
export const UNREAD_MS = 10_000
export const UNREAD_SCRAPE_MS = 2_000

/** Lists that are read, or sent, at the same time; of an organization `perKey`. */
export const LISTS = { atOnce: 16, perKey: 4 }
/** Lists that are read at the same time, among the lists that have a place. */
export const LIST_READS = { atOnce: 2, perKey: 1 }
/** How long a client may take for a list, and for a list of healthchecks' API, which has no pages. */
export const LIST_MS = 30_000
export const WHOLE_LIST_MS = 300_000

/** Pages of the dashboard that are read at the same time; `perKey` of an organization, and of a user. */
export const PAGES = { atOnce: 2, perKey: 1 }
/** Pages without a session: each address waits for itself. */
export const OPEN_PAGES = { atOnce: 2, perKey: 1 }
/** Changes by the dashboard: each takes a connection of the pool; `perKey` of an organization. */
export const CHANGES = { atOnce: 8, perKey: 4 }
/** The longest wait for a place of a list, a page or a change. */
export const TURN_MS = 5_000
/** When a client that found no place may try again. */
export const RETRY_SECONDS = 5

/** Pages that wait for changes. A browser opens one for each visible window. */
export const STREAMS_PER_SESSION = 20
/** However many sessions a user has. */
export const STREAMS_PER_USER = 100
/** Above this the user with the most gives one up, so that no user ends the pages of others. */
export const STREAMS = 2_000
/** What may wait for the client of such a page to read: many more events than a page has use for. */
export const STREAM_BYTES = 65_536

/** Responses that are compressed at the same time, and that wait. A compressor holds half a megabyte. */
export const COMPRESSIONS = { atOnce: 4, waiting: 16 }
/** Scrapes at the same time. Those that wait share what one of them reads. */
export const SCRAPES = 3

/** In a minute: wrong credentials of an address. */
export const REJECTIONS = 300
/** In a minute: links of messages that we have not made, of an address and of a network of 256 IPv6 addresses. */
export const FORGED_LINKS = { address: 50, network: 100 }
/** In a minute: requests by the link of an incident. */
export const LINK_REQUESTS = 60
/** In a minute: badges of a key. Caches ask once a minute for each badge. A badge of a project reads all its checks. */
export const BADGES = 600
/** In a minute: requests of a user to the dashboard. Each open page makes two, or more when it reconnects. */
export const DASHBOARD_REQUESTS = 6_000
