/** The chart as kubeconform judges it, by the schemas of the oldest supported Kubernetes; the running one judges it in admission.test.ts. */

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { applyCrds } from '../../tools/cluster/control-plane-crds.ts'
import { findTool } from '../../tools/programs/tools.ts'
import { cluster } from '../support/cluster.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { EACH_CASE } from './cases.ts'
import { CHART, renderText } from './chart.ts'
import { type OpenApiDocuments, readOpenApi, writeSchemas } from './schemas.ts'

const fixture = (path: string) => new URL(`../fixtures/${path}`, import.meta.url).pathname
/** Kinds that no Kubernetes has by itself. */
const CUSTOM = ['apis/heartbeat-operator.io/v1', 'apis/monitoring.coreos.com/v1', 'apis/gateway.networking.k8s.io/v1']
const KUBECONFORM = await findTool('kubeconform')

interface Verdict {
  readonly valid: number
  /** What is wrong, and with which object. */
  readonly faults: readonly string[]
}

/** `location` is one of writeSchemas. */
function judge(location: string, yaml: string): Promise<Verdict> {
  const args = ['-strict', '-summary', '-output', 'json', '-schema-location', location]
  return new Promise((resolve, reject) => {
    const child = execFile(KUBECONFORM, args, { maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
      // 1 says that something is invalid, and the output says what.
      if (error !== null && error.code !== 1)
        return reject(new Error(`kubeconform failed: ${stderr}`, { cause: error }))
      const { resources, summary } = JSON.parse(stdout) as {
        resources: { kind: string; name: string; status: string; msg: string }[]
        summary: { valid: number }
      }
      const faults = resources.map(({ kind, name, status, msg }) => `${kind} ${name}: ${status} ${msg}`)
      resolve({ valid: summary.valid, faults: faults.sort() })
    })
    child.stdin?.on('error', () => {}) // it may end without reading
    child.stdin?.end(yaml)
  })
}

let folder: TempFolder
let location: string

beforeAll(async () => {
  folder = await makeTempFolder()
  await applyCrds(cluster, [fixture('crds')])
  // The server documents a new kind a moment after it accepts objects of it.
  const running = await eventually('the API server documents all kinds', async () => {
    const documents = await readOpenApi(cluster)
    return CUSTOM.every((path) => documents[path] !== undefined) && documents
  })
  const oldest: OpenApiDocuments = JSON.parse(readFileSync(fixture('kubernetes-1.33/openapi.json'), 'utf8'))
  const custom = Object.fromEntries(CUSTOM.map((path) => [path, running[path]!]))
  location = await writeSchemas(join(folder.path, 'schemas'), { ...oldest, ...custom })
})
afterAll(() => folder?.remove())

describe('the oldest Kubernetes', () => {
  it.each(EACH_CASE)('takes every object, with the values of "%s"', async (_, values) => {
    const yaml = await renderText(values)
    const { valid, faults } = await judge(location, yaml)
    expect(faults).toEqual([])
    expect(valid).toBe(yaml.match(/^kind: /gm)!.length)
  })

  it('takes the HeartbeatCheck that the chart shows as an example', async () => {
    const { annotations } = parse(readFileSync(`${CHART}/Chart.yaml`, 'utf8'))
    const examples = parse(annotations['artifacthub.io/crdsExamples']) as object[]
    expect(await judge(location, examples.map((example) => stringify(example)).join('---\n'))).toEqual({
      valid: 1,
      faults: [],
    })
  })

  it('refuses a field that is misspelt, a value of the wrong type, and a kind that it does not know', async () => {
    const yaml = await renderText({})
    const broken = yaml
      .replace('terminationGracePeriodSeconds: 45', 'terminationGracePeriod: 45')
      .replace('replicas: 1\n', 'replicas: one\n')
    const { faults } = await judge(
      location,
      `${broken}\n---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n`,
    )
    expect(faults).toEqual([
      expect.stringMatching(/^Deployment heartbeat-api: .*additional properties 'terminationGracePeriod' not allowed/),
      expect.stringMatching(/^StatefulSet heartbeat-postgresql: .*got string, want integer/),
      expect.stringContaining('Thing x: statusError could not find schema for Thing'),
    ])
  })
})
