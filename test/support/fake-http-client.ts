import type { HttpClient, HttpRequest, HttpResponse } from '../../src/delivery/http.ts'

/** A client without sockets: records each request, and returns `response` (200, with an empty body). */
export function createFakeHttpClient(response: Partial<HttpResponse> = {}): HttpClient & {
  readonly requests: HttpRequest[]
} {
  const requests: HttpRequest[] = []
  return {
    requests,
    async send(request) {
      requests.push(request)
      return { status: 200, headers: {}, text: '', ...response }
    },
    async close() {},
  }
}
