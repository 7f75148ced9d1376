/** Where the real Chromium of the browser tests and of the pictures comes from: found on this machine, or fetched once from Debian. */

import { writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fetchDebianPackages, unpackedEnvironment } from './debian-packages.ts'
import { findIn, isProgram, listPath } from './places.ts'
import type { Environment, Note } from './programs.ts'

export interface ChromiumProgram {
  readonly path: string
  /** Of its process. */
  readonly environment: Readonly<Record<string, string>>
}

/** CHROMIUM_BIN names no program; the message says what to do. */
export class ChromiumMissing extends Error {
  override readonly name = 'ChromiumMissing'
}

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
/** Fonts too, so that pages look alike on every machine, and names in other scripts are no empty boxes. */
const PACKAGES = ['chromium', 'fonts-inter', 'fonts-jetbrains-mono', 'fonts-noto-core', 'fonts-droid-fallback']
/** The program itself. What Debian has in `usr/bin` is a script that expects the package in the system's folders. */
const INSIDE = join('usr', 'lib', 'chromium', 'chromium')
const FONTS = join('usr', 'share', 'fonts.conf')

/**
 * CHROMIUM_BIN, else the one in PATH, else the one of Debian's package, unpacked into the user's cache folder and installed
 * nowhere, with fonts of its own. A first download is reported through `note` (default: stderr). Throws ChromiumMissing or
 * DebianPackagesMissing.
 */
export async function findChromium(options: { environment?: Environment; note?: Note } = {}): Promise<ChromiumProgram> {
  const { environment = process.env } = options
  const own = { ...environment } as Record<string, string>
  const { CHROMIUM_BIN: given = '' } = environment
  if (given !== '') {
    if (await isProgram(given)) return { path: given, environment: own }
    throw new ChromiumMissing(`CHROMIUM_BIN is ${given}, which is no program: correct it, or leave it out`)
  }
  for (const name of NAMES) {
    const path = await findIn(listPath(environment), name)
    if (path !== null) return { path, environment: own }
  }
  const root = await fetchDebianPackages({
    ...options,
    name: 'chromium',
    packages: PACKAGES,
    scope: 'missing',
    prepare: (unpacked) => writeFile(join(unpacked, FONTS), FONT_SETTINGS),
    otherwise: 'Set CHROMIUM_BIN to the path of a Chromium or Chrome, or install one in PATH.',
  })
  const unpacked = unpackedEnvironment(root, environment)
  const libraries = (unpacked.LD_LIBRARY_PATH ?? '').split(delimiter)
  // libpulse finds a library of its own package by a path in the system's folders.
  const withPulse = [...libraries, ...libraries.map((folder) => join(folder, 'pulseaudio'))].join(delimiter)
  const fonts = { FONTCONFIG_FILE: join(root, FONTS) }
  return { path: join(root, INSIDE), environment: { ...unpacked, LD_LIBRARY_PATH: withPulse, ...fonts } }
}

const FONT_SETTINGS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <dir prefix="relative">fonts-droid-fallback</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
${['system-ui', 'ui-sans-serif', 'sans-serif'].map((family) => preferFonts(family, ['Inter', 'Noto Sans', 'Droid Sans Fallback'])).join('\n')}
${['ui-monospace', 'monospace'].map((family) => preferFonts(family, ['JetBrains Mono', 'Noto Sans', 'Droid Sans Fallback'])).join('\n')}
</fontconfig>
`

function preferFonts(family: string, fonts: readonly string[]): string {
  const names = fonts.map((font) => `<family>${font}</family>`).join('')
  return `  <alias binding="same"><family>${family}</family><prefer>${names}</prefer></alias>`
}
