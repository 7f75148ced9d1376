/** docs/reference/compatibility.md names the versions that the code demands and that the tests run. */

import { expect, it } from 'vitest'
import { moduleFolder, readPinnedVersion, readRequiredVersion } from '../../../tools/programs/programs.ts'
import { readText } from '../../support/documents.ts'

const rowOf = (name: string) => new RegExp(`^\\| ${name}.*$`, 'm').exec(readText('docs/reference/compatibility.md'))![0]
const minorOf = (version: string) => version.split('.').slice(0, 2).join('.')
const found = (path: string, pattern: RegExp) => pattern.exec(readText(path))![1]!

const [oldest, newest, helm] = await Promise.all([
  readPinnedVersion('oldest'),
  readPinnedVersion('newest'),
  readRequiredVersion(`${moduleFolder('newest')}helm`, 'helm.sh/helm/v4'),
])
const prometheusOperator = found('test/fixtures/crds/README.md', /prometheus-operator` v([\d.]+)/)
const gateway = found('test/fixtures/crds/README.md', /gateway-api` v([\d.]+)/)

it.each([
  ['Kubernetes', [`${minorOf(oldest)} or later`, minorOf(newest)]],
  ['Kubernetes', [`${found('charts/heartbeat-operator/Chart.yaml', /kubeVersion: ">=(\d+\.\d+)/)} or later`]],
  ['Helm', [minorOf(helm)]],
  ['PostgreSQL', [`${Number(found('src/store/postgres/migrate.ts', /OLDEST_SERVER = (\d+)_/)) / 10} or later`]],
  ['PostgreSQL', [found('charts/heartbeat-operator/values.yaml', /^ {4}tag: "(\d+)@/m)]],
  ['Prometheus Operator', [minorOf(prometheusOperator)]],
  ['Gateway API', [minorOf(gateway)]],
])('%s: %s', (name, versions) => {
  for (const version of versions) expect(rowOf(name)).toContain(version)
})
