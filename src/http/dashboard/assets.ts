/** Styles and scripts. A name holds the hash of its content, so that a browser may keep the file for ever. */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compressOnce, type Encoding } from '../compress.ts'

const TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const

interface Asset {
  readonly type: string
  bytes(encoding: Encoding): Promise<Buffer>
}

export interface Assets {
  /** Paths for the layout, `/assets/dashboard-1f2e3d4c5b6a.css`. */
  readonly styles: string
  /** Sets a global that `script`, a module, uses. */
  readonly library: string
  readonly script: string
  /** Null: no release has the file. `isOther`: a page of another release, whose replicas run too, needs it. */
  find(name: string): { readonly asset: Asset; readonly isOther: boolean } | null
}

export const ASSETS_PATH = '/assets/'

const { resolve } = createRequire(import.meta.url)
const own = (name: string) => new URL(`./assets/${name}`, import.meta.url)

/** The files of packages. tools/images keeps these in the image, and removes the others of the styles' package. */
const PICO = '@picocss/pico/css/pico.min.css'
const IDIOMORPH = 'idiomorph/dist/idiomorph.min.js'

export function readAssets(): Assets {
  const styles = readdirSync(own('.'))
    .filter((name) => name.endsWith('.css'))
    .sort()
    .map((name) => readFileSync(own(name)))
  const files = new Map<string, Asset>()
  /** By name without hash. */
  const newest = new Map<string, Asset>()

  function add(name: string, kind: keyof typeof TYPES, content: Buffer): string {
    const hash = createHash('sha256').update(content).digest('hex').slice(0, 12)
    const file = `${name}-${hash}.${kind}`
    const asset = { type: TYPES[kind], bytes: compressOnce(content) }
    files.set(file, asset)
    newest.set(`${name}.${kind}`, asset)
    return ASSETS_PATH + file
  }

  return {
    styles: add('dashboard', 'css', Buffer.concat([readFileSync(resolve(PICO)), ...styles])),
    library: add('idiomorph', 'js', readFileSync(resolve(IDIOMORPH))),
    script: add('dashboard', 'js', readFileSync(own('dashboard.js'))),
    find(name) {
      const own = files.get(name)
      if (own !== undefined) return { asset: own, isOther: false }
      const asset = newest.get(name.replace(/-[0-9a-f]{12}(?=\.\w+$)/, ''))
      return asset === undefined || newest.has(name) ? null : { asset, isOther: true }
    },
  }
}
