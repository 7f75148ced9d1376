/** A service, a check that is down, and its link. Each request comes from the address that it names. */

import { createIncidentTokens } from '../../../src/auth/incident-tokens.ts'
import type { FindClientAddress } from '../../../src/http/client-address.ts'
import { SECRET_KEY, type TestApi } from '../../support/service.ts'

const ADDRESS = 'x-test-address'

/** For `startTestApi`. */
export const findClientAddress: FindClientAddress = ({ headers }) => String(headers[ADDRESS] ?? '192.0.2.1')

export const tokens = createIncidentTokens(SECRET_KEY, [])

export interface Down {
  readonly id: string
  readonly publicId: string
  /** The path of its link, `/ack/<token>`. */
  readonly path: string
}

export async function takeDown(api: TestApi, fields: object = {}): Promise<Down> {
  const { id, public_id: publicId } = await api.addCheck(fields)
  return failAgain(api, { id, publicId })
}

/** Another incident of the check. */
export async function failAgain(api: TestApi, { id, publicId }: Omit<Down, 'path'>): Promise<Down> {
  await api.ping(publicId, { type: 'fail', exitCode: 17, body: Buffer.from('output of the job') })
  const { status_since: since } = (await api.client.get(`/checks/${id}`)).body
  return { id, publicId, path: `/ack/${tokens.sign({ checkId: id, since: Date.parse(since) })}` }
}

export interface Sent {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** A GET by default. `form`: makes it a POST. */
export async function send(
  api: Pick<TestApi, 'url'>,
  path: string,
  { form, from, ...init }: RequestInit & { form?: Record<string, string>; from?: string } = {},
): Promise<Sent> {
  const headers = { ...(from === undefined ? {} : { [ADDRESS]: from }), ...(init.headers as object) }
  const body = form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }
  const response = await fetch(new URL(path, api.url), { ...body, ...init, headers })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

export const acknowledgedOf = async (api: TestApi, id: string) =>
  (await api.client.get(`/checks/${id}`)).body.acknowledged
