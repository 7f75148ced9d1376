import { describe, expect, it } from 'vitest'
import { moveUnreleased, readSection } from '../../../tools/release/changelog.ts'
import { compareVersions, isVersion } from '../../../tools/release/version.ts'
import { DOCUMENTS, readText } from '../../support/documents.ts'

const BASE = 'https://example.com/a/b'
const HEAD = '# Changelog\n\n## [Unreleased]\n'
const FIRST = `${HEAD}
## [1.0.0] - 2026-01-01

The first.

[Unreleased]: ${BASE}/compare/v1.0.0...HEAD
[1.0.0]: ${BASE}/releases/tag/v1.0.0
`

describe('a release moves what is unreleased', () => {
  it('under the heading of the version, with the date and the links', () => {
    const changed = FIRST.replace(HEAD, `${HEAD}\n### Fixed\n\n- A fault\n`)
    expect(moveUnreleased(changed, { version: '1.1.0', date: '2026-02-03' })).toBe(`${HEAD}
## [1.1.0] - 2026-02-03

### Fixed

- A fault

## [1.0.0] - 2026-01-01

The first.

[Unreleased]: ${BASE}/compare/v1.1.0...HEAD
[1.1.0]: ${BASE}/compare/v1.0.0...v1.1.0
[1.0.0]: ${BASE}/releases/tag/v1.0.0
`)
  })

  it('before the text of a section that is prepared, which gets the date', () => {
    const changed = FIRST.replace(HEAD, `${HEAD}\nAlso\n[this](a.md).\n`)
    expect(moveUnreleased(changed, { version: '1.0.0', date: '2026-02-03' })).toBe(
      FIRST.replace('## [1.0.0] - 2026-01-01\n', '## [1.0.0] - 2026-02-03\n\nAlso\n[this](a.md).\n'),
    )
  })

  it('even where that is nothing', () => {
    const moved = moveUnreleased(FIRST, { version: '1.0.1', date: '2026-02-03' })
    expect(moved).toContain(`${HEAD}\n## [1.0.1] - 2026-02-03\n\n## [1.0.0] - 2026-01-01\n`)
    expect(readSection(moved, '1.0.1')).toBe('')
  })

  it('and fails without the heading or the link', () => {
    for (const text of [FIRST.replace('## [Unreleased]', '## News'), FIRST.replace('...HEAD', '')])
      expect(() => moveUnreleased(text, { version: '1.1.0', date: '2026-02-03' })).toThrow('## [Unreleased]')
  })
})

it('the text of a version is that below its heading, up to the next one or the links', () => {
  expect(readSection(FIRST, '1.0.0')).toBe('The first.')
  expect(() => readSection(FIRST, '1.1.0')).toThrow('has no section for 1.1.0')
})

it('a version is three numbers', () => {
  expect(['1.0.0', '0.10.20'].filter(isVersion)).toEqual(['1.0.0', '0.10.20'])
  expect(
    ['', '1', '1.0', 'v1.0.0', '1.0.0.0', '01.0.0', '1.0.0-rc.1', '1.0.x', ' 1.0.0', '1.0.0\n'].filter(isVersion),
  ).toEqual([])
})

it('versions are ordered by their numbers', () => {
  const versions = ['1.10.0', '2.0.0', '1.9.9', '1.9.10', '0.99.0']
  expect(versions.toSorted(compareVersions)).toEqual(['0.99.0', '1.9.9', '1.9.10', '1.10.0', '2.0.0'])
  expect(compareVersions('1.2.3', '1.2.3')).toBe(0)
})

describe('the version of package.json', () => {
  const { version } = JSON.parse(readText('package.json'))

  it('is that of the lock, the chart and the image that the chart installs', () => {
    const lock = JSON.parse(readText('package-lock.json'))
    expect([lock.version, lock.packages[''].version]).toEqual([version, version])
    const chart = readText('charts/heartbeat-operator/Chart.yaml')
    expect(chart.match(/^(?:appVersion|version): .*$/gm)).toEqual([`version: ${version}`, `appVersion: ${version}`])
    for (const name of ['install', 'install-namespaced'])
      expect(new Set(readText(`manifests/${name}.yaml`).match(/\/heartbeat-operator:\S+/g))).toEqual(
        new Set([`/heartbeat-operator:${version}`]),
      )
    const named = DOCUMENTS.flatMap((path) => readText(path).match(/(?<=heartbeat-operator[:-])\d+\.\d+\.\d+/g) ?? [])
    expect(new Set(named)).toEqual(new Set([version]))
  })

  it('has a section in the changelog; that of the first one has 8 to 30 lines', () => {
    expect(() => readSection(readText('CHANGELOG.md'), version)).not.toThrow()
    const lines = readSection(readText('CHANGELOG.md'), '1.0.0').split('\n').length
    expect(lines).toBeGreaterThanOrEqual(8)
    expect(lines).toBeLessThanOrEqual(30)
  })
})
