import { mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ConfigError } from '../../../src/config/config.ts'
import { loadOrMakeSecretKey } from '../../../src/config/secret-key.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { use } from '../../support/use.ts'

let dataDir: string

const temp = use(makeTempFolder)
beforeEach(async () => {
  dataDir = join(temp.path, 'data')
  await rm(dataDir, { recursive: true, force: true })
})

describe('the key in the data folder', () => {
  it('is made once, for its owner alone, and nothing else stays', async () => {
    const key = await loadOrMakeSecretKey(dataDir)
    expect(key).toHaveLength(32)
    expect(await loadOrMakeSecretKey(dataDir)).toEqual(key)
    expect(await readdir(dataDir)).toEqual(['secret-key'])
    expect((await stat(join(dataDir, 'secret-key'))).mode & 0o777).toBe(0o600)
    expect(Buffer.from(await readFile(join(dataDir, 'secret-key'), 'utf8'), 'base64')).toEqual(key)
  })

  it('is the same for many first starts at the same time', async () => {
    for (let round = 1; round <= 20; round += 1) {
      await rm(dataDir, { recursive: true, force: true })
      const keys = await Promise.all(Array.from({ length: 8 }, () => loadOrMakeSecretKey(dataDir)))
      expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(1)
      expect(await readdir(dataDir)).toEqual(['secret-key'])
    }
  })

  it('is on the disk, with its name, before it is used', async () => {
    const handle = await open(temp.path)
    const sync = vi.spyOn(Object.getPrototypeOf(handle), 'sync')
    await handle.close()
    await loadOrMakeSecretKey(dataDir)
    expect(sync, 'of the file and the folder').toHaveBeenCalledTimes(2)
    await loadOrMakeSecretKey(dataDir)
    expect(sync).toHaveBeenCalledTimes(2)
    sync.mockRestore()
  })

  it.each(['', 'AAAA', 'not a key'])('is not replaced where the file holds %j', async (text) => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'secret-key'), text)
    await expect(loadOrMakeSecretKey(dataDir)).rejects.toThrow(/secret-key does not hold a key of 32 bytes: restore it/)
    expect(await readFile(join(dataDir, 'secret-key'), 'utf8')).toBe(text)
  })

  it('cannot be made in a folder that is a file', async () => {
    await writeFile(dataDir, '')
    await expect(loadOrMakeSecretKey(dataDir)).rejects.toThrow(ConfigError)
    await expect(loadOrMakeSecretKey(dataDir)).rejects.toThrow(/DATA_DIR cannot be written to/)
  })
})
