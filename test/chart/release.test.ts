/**
 * What a release publishes. The chart is pushed by Helm to Debian's registry; cosign and gh, which need identities of the hosted CI, are
 * programs here that write down how they were called.
 */

import { execFile, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { createAuthority, signServer } from '../../tools/cluster/control-plane-certificates.ts'
import { fetchDebianPackages } from '../../tools/programs/debian-packages.ts'
import { findTool } from '../../tools/programs/tools.ts'
import { makeAssets } from '../../tools/release/assets.ts'
import { CHECKOUT } from '../support/documents.ts'
import { findFreePort } from '../support/ports.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { helm } from './chart.ts'

const run = promisify(execFile)
const DIGEST = `sha256:${'a'.repeat(64)}`
const IMAGE = `ghcr.io/heartbeat-operator/heartbeat-operator@${DIGEST}`
const { version } = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8'))

let folder: TempFolder
beforeAll(async () => {
  folder = await makeTempFolder()
})
afterAll(() => folder.remove())

const imagesIn = (yaml: string): string[] =>
  parseAllDocuments(yaml).flatMap((document) => {
    const { spec } = document.toJS()?.spec?.template ?? {}
    return (spec?.containers ?? []).map(({ image }: { image: string }) => image)
  })

it('the assets name the image by its digest: the chart, and both manifests; the CRDs are as they are', async () => {
  const assets = await makeAssets(DIGEST, join(folder.path, 'assets'))
  expect(assets.map((path) => basename(path))).toEqual([
    `heartbeat-operator-${version}.tgz`,
    'install.yaml',
    'install-namespaced.yaml',
    'heartbeatchecks.yaml',
    'heartbeatchannels.yaml',
    'heartbeatsilences.yaml',
  ])
  const [chart, ...manifests] = assets
  const { stdout } = await helm(['template', 'heartbeat', chart!, '--set', 'generateSecrets=true'])
  expect(new Set(imagesIn(stdout).filter((image) => !image.includes('postgres')))).toEqual(new Set([IMAGE]))
  const texts = manifests.map((path) => readFileSync(path, 'utf8'))
  for (const text of texts.slice(0, 2)) expect(imagesIn(text)).toEqual([IMAGE, IMAGE])
  expect(texts[2]).toBe(readFileSync(join(CHECKOUT, 'crds/heartbeatchecks.yaml'), 'utf8'))
  expect(texts[3]).toBe(readFileSync(join(CHECKOUT, 'crds/heartbeatchannels.yaml'), 'utf8'))
  expect(texts[4]).toBe(readFileSync(join(CHECKOUT, 'crds/heartbeatsilences.yaml'), 'utf8'))
  await expect(makeAssets('', join(folder.path, 'none'))).rejects.toThrow('"" is no digest')
})

describe('in a workflow', () => {
  let programs: string
  /** What cosign and gh were called with, one call in a line. */
  const readCalls = () => readFileSync(join(folder.path, 'calls'), 'utf8').trimEnd().split('\n')

  beforeAll(async () => {
    programs = join(folder.path, 'bin')
    mkdirSync(programs)
    for (const name of ['cosign', 'gh'])
      writeFileSync(join(programs, name), `#!/bin/sh\necho "${name} $*" >> '${folder.path}/calls'\n`, { mode: 0o755 })
  })

  const script = async (name: string, variables: Record<string, string>) => {
    const PATH = `${programs}:${dirname(await findTool('helm'))}:${process.env.PATH}`
    return run(process.execPath, [join(CHECKOUT, 'tools/release', name)], {
      env: { ...process.env, PATH, ...variables },
    })
  }

  it('check-tag.ts takes no tag but that of the version', async () => {
    await script('check-tag.ts', { GITHUB_REF_NAME: `v${version}` })
    const why = `the tag is v0.9.0, and package.json has the version ${version}`
    await expect(script('check-tag.ts', { GITHUB_REF_NAME: 'v0.9.0' })).rejects.toThrow(why)
  })

  it('publish.ts pushes the chart beside the image, signs both by digest, and gives the digests to the next steps', async () => {
    const root = await fetchDebianPackages({ name: 'registry', packages: ['docker-registry'], scope: 'missing' })
    const address = `localhost:${await findFreePort()}`
    const authority = createAuthority('a registry')
    const server = signServer(authority, ['localhost'])
    const [settings, key, certificate, authorities] = ['registry.json', 'key', 'certificate', 'authorities'].map(
      (name) => join(folder.path, name),
    ) as [string, string, string, string]
    writeFileSync(key, server.key)
    writeFileSync(certificate, server.certificate)
    writeFileSync(authorities, authority.certificate)
    const storage = { filesystem: { rootdirectory: join(folder.path, 'registry') } }
    writeFileSync(
      settings,
      JSON.stringify({
        version: 0.1,
        log: { level: 'error' },
        storage,
        http: { addr: address, tls: { key, certificate } },
      }),
    )
    const registry = spawn(join(root, 'usr/bin/docker-registry'), ['serve', settings], { stdio: 'ignore' })
    try {
      const status = () =>
        new Promise((resolve, reject) => {
          const request = get(`https://${address}/v2/`, { ca: authority.certificate })
          request.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject)
        })
      await eventually('the registry', async () => (await status()) === 200)
      const [pushed, outputs] = [join(folder.path, 'pushed.json'), join(folder.path, 'outputs')]
      const repository = `${address}/heartbeat-operator/heartbeat-operator`
      writeFileSync(pushed, JSON.stringify({ repository, digest: DIGEST }))
      await script('publish.ts', { PUSHED: pushed, GITHUB_OUTPUT: outputs, SSL_CERT_FILE: authorities })
      const charts = `${address}/heartbeat-operator/charts/heartbeat-operator`
      const [, digest] = /^chart-digest=(.+)$/m.exec(readFileSync(outputs, 'utf8'))!
      expect(readFileSync(outputs, 'utf8')).toBe(
        `image=${repository}\nimage-digest=${DIGEST}\nchart=${charts}\nchart-digest=${digest}\n`,
      )
      const env = { PATH: '', HOME: folder.path, SSL_CERT_FILE: authorities }
      const { stdout } = await run(await findTool('helm'), ['show', 'values', `oci://${charts}@${digest}`], { env })
      expect(parse(stdout).image.digest).toBe(DIGEST)
      expect(readCalls()).toEqual([
        `cosign sign --yes --recursive ${repository}@${DIGEST}`,
        `cosign sign --yes --recursive ${charts}@${digest}`,
      ])
    } finally {
      registry.kill('SIGKILL')
    }
  })

  it('announce.ts makes the release of the tag with the text of the changelog and the files', async () => {
    rmSync(join(folder.path, 'calls'), { force: true })
    const before = readdirSync(CHECKOUT)
    await script('announce.ts', { IMAGE_DIGEST: DIGEST })
    expect(readCalls()).toEqual([
      expect.stringMatching(
        new RegExp(
          `^gh release create v${version} --verify-tag --title ${version} --notes-file \\S+/notes\\.md ` +
            `\\S+/heartbeat-operator-${version}\\.tgz \\S+/install\\.yaml \\S+/install-namespaced\\.yaml \\S+/heartbeatchecks\\.yaml \\S+/heartbeatchannels\\.yaml \\S+/heartbeatsilences\\.yaml$`,
        ),
      ),
    ])
    expect(readdirSync(CHECKOUT)).toEqual(before)
  })
})
