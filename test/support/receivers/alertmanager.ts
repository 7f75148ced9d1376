/** Alertmanager, by the OpenAPI document of its API v2. `test/prometheus` sends to the real one. */

import { demand, startHttpService } from './service.ts'

export const startAlertmanager = () =>
  startHttpService({
    settingsAt: (url) => ({ kind: 'alertmanager', urls: [url.replace('//', '//robot:s3cret@')], labels: {} }),
    accept({ path, body }) {
      demand(path === '/api/v2/alerts', 'no such path')
      for (const { labels, annotations, startsAt, endsAt } of JSON.parse(body)) {
        demand(typeof labels.alertname === 'string', 'at least one label pair required')
        for (const [name, value] of Object.entries(labels as object))
          demand(/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name) && typeof value === 'string', 'invalid label set')
        for (const name of Object.keys(annotations)) demand(/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name), 'invalid label set')
        demand(Date.parse(startsAt) <= Date.parse(endsAt), 'start time must be before end time')
      }
      return { status: 200 }
    },
    // Its labels, and its start.
    keyOf: ({ body }) =>
      JSON.stringify(
        JSON.parse(body).map(({ labels, startsAt }: object & Record<string, unknown>) => [labels, startsAt]),
      ),
    tooMany: { status: 429, text: 'Limit of concurrent requests reached' },
    tooManyMs: null,
    gone: { status: 404, text: 'not found' },
    isGoneAtOnce: false,
  })
