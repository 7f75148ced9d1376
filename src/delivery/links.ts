/** Where people and programs find out more. */

export interface Links {
  /** `{base_url}/checks/{id}`; `/pings` and `/flips` below it are its history. */
  check(checkId: string): string
}

/** @param baseUrl BASE_URL, with or without a slash at its end. Asked for when it is needed: the port may not be known before the start. */
export function createLinks(baseUrl: () => string): Links {
  return { check: (checkId) => `${baseUrl().replace(/\/+$/, '')}/checks/${checkId}` }
}
