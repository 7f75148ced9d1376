/** Where the tests' Prometheus comes from, with stand-ins for it and for apt: the real download is 20 MB. */

import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findPrometheus } from '../support/prometheus-program.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-prometheus-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const at = (...names: string[]) => join(folder, ...names)
async function install(...names: string[]): Promise<void> {
  const path = at(...names)
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, '#!/bin/sh\n')
  await chmod(path, 0o755)
}

const find = (environment: Record<string, string> = {}) =>
  findPrometheus({
    environment: { PATH: at('bin'), HOME: folder, XDG_CACHE_HOME: at('cache'), ...environment },
    note: () => {},
  })

it('takes the one that it is told, with the promtool beside it, and says when that is none', async () => {
  for (const name of ['prometheus', 'promtool']) await install('bin', name)
  for (const name of ['prom', 'promtool']) await install('else', name)
  expect(await find({ PROMETHEUS_BIN: at('else', 'prom') })).toEqual({
    prometheus: at('else', 'prom'),
    promtool: at('else', 'promtool'),
  })
  await expect(find({ PROMETHEUS_BIN: at('nothing') })).rejects.toThrow(
    `PROMETHEUS_BIN is ${at('nothing')}, which is no program`,
  )
})

it('takes that of PATH', async () => {
  for (const name of ['prometheus', 'promtool']) await install('bin', name)
  expect(await find()).toEqual({ prometheus: at('bin', 'prometheus'), promtool: at('bin', 'promtool') })
})

it('says that promtool is missing', async () => {
  await install('bin', 'prometheus')
  await expect(find()).rejects.toThrow(`there is no promtool beside ${at('bin', 'prometheus')}: set PROMETHEUS_BIN`)
})

it('says what to set where there is no apt', async () => {
  await expect(find()).rejects.toThrow(/there is no apt-get on this system\nSet PROMETHEUS_BIN/)
})
