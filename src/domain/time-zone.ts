/** Time zones by their names in the IANA database, with their offsets from UTC in the database that Node contains. */

/** The offset of one zone. */
export interface TimeZone {
  /** How far local clocks are ahead of UTC at an instant, in milliseconds; negative in the west. Throws RangeError for NaN. */
  readonly offsetAt: (atMs: number) => number
  /** A stretch around an instant. The next one may have the same offset. Throws RangeError for NaN. */
  readonly stretchAt: (atMs: number) => Stretch
}

/** A stretch of time with one offset, at most 50 days long. */
export interface Stretch {
  readonly fromMs: number
  readonly untilMs: number
  readonly offsetMs: number
}

/**
 * Names that Intl accepts and does not list: those in Go 1.26 (test/fixtures/cron-slots/zones.json). Intl also accepts
 * any case and names that are not IANA's (`PST`, `+01:00`), so that only a list tells a name from a misspelling.
 */
const UNLISTED = [
  ...under('Africa', 'Asmara Timbuktu'),
  ...under('America', 'Atikokan Atka Ensenada Fort_Wayne Knox_IN Montreal Nipigon Nuuk Pangnirtung Porto_Acre'),
  ...under('America', 'Rainy_River Rosario Santa_Isabel Shiprock Thunder_Bay Virgin Yellowknife'),
  ...under('America', 'Indiana/Indianapolis Kentucky/Louisville'),
  ...under('America/Argentina', 'Buenos_Aires Catamarca ComodRivadavia Cordoba Jujuy Mendoza'),
  ...under('Antarctica', 'South_Pole'),
  ...under('Asia', 'Ashkhabad Choibalsan Chongqing Chungking Dacca Harbin Ho_Chi_Minh Istanbul Kashgar Kathmandu'),
  ...under('Asia', 'Kolkata Macao Tel_Aviv Thimbu Ujung_Pandang Ulan_Bator Yangon'),
  ...under('Atlantic', 'Faroe Jan_Mayen'),
  ...under('Australia', 'ACT Canberra Currie LHI NSW North Queensland South Tasmania Victoria West Yancowinna'),
  ...under('Brazil', 'Acre DeNoronha East West'),
  ...under('Canada', 'Atlantic Central Eastern Mountain Newfoundland Pacific Saskatchewan Yukon'),
  ...under('Chile', 'Continental EasterIsland'),
  ...under('Etc', 'GMT GMT0 GMT+0 GMT-0 Greenwich UCT UTC Universal Zulu'),
  ...under('Etc', 'GMT+1 GMT+2 GMT+3 GMT+4 GMT+5 GMT+6 GMT+7 GMT+8 GMT+9 GMT+10 GMT+11 GMT+12'),
  ...under('Etc', 'GMT-1 GMT-2 GMT-3 GMT-4 GMT-5 GMT-6 GMT-7 GMT-8 GMT-9 GMT-10 GMT-11 GMT-12 GMT-13 GMT-14'),
  ...under('Europe', 'Belfast Kyiv Nicosia Tiraspol Uzhgorod Zaporozhye'),
  ...under('Mexico', 'BajaNorte BajaSur General'),
  ...under('Pacific', 'Chuuk Johnston Kanton Pohnpei Samoa Yap'),
  ...under('US', 'Alaska Aleutian Arizona Central East-Indiana Eastern Hawaii Indiana-Starke Michigan Mountain'),
  ...under('US', 'Pacific Samoa'),
  ...'CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST'.split(' '),
  ...'Hongkong Iceland Iran Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo'.split(' '),
  ...'PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT UTC Universal W-SU WET Zulu'.split(' '),
]

const NAMES: ReadonlySet<string> = new Set([...Intl.supportedValuesOf('timeZone'), ...UNLISTED])

function under(area: string, places: string): string[] {
  return places.split(' ').map((place) => `${area}/${place}`)
}

/** Whether it is a name in the IANA database, in its spelling: Kubernetes rejects `europe/berlin` in a CronJob. */
export function isTimeZone(name: string): boolean {
  return NAMES.has(name)
}

/** The names of all zones, in the order of the alphabet. */
export function listTimeZones(): string[] {
  return [...NAMES].sort()
}

/** By name; bounded by the number of names. */
const zones = new Map<string, TimeZone>()

/** The zone of that name, always the same object; undefined for a name that is not one (`isTimeZone`). */
export function findTimeZone(name: string): TimeZone | undefined {
  let zone = zones.get(name)
  if (zone === undefined && isTimeZone(name)) {
    zone = createTimeZone(name)
    zones.set(name, zone)
  }
  return zone
}

/**
 * A call of Intl takes a microsecond and a slot needs a hundred offsets, so the offsets of a window of 50 days are read once and cached.
 * Probes 3.1 days apart miss no change: the shortest stretch of any zone from 1970 to 2044 is 6.96 days (America/Recife 2000).
 */
const WINDOW_MS = 2 ** 32
const PROBE_MS = 2 ** 28
const MAX_WINDOWS = 256

function createTimeZone(name: string): TimeZone {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' })
  const windows = new Map<number, readonly Stretch[]>()
  let latest: Stretch = { fromMs: 0, untilMs: 0, offsetMs: 0 }

  function readOffset(atMs: number): number {
    const [, sign, hours, minutes, seconds = 0] = /([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(format.format(atMs)) ?? []
    if (sign === undefined) return 0 // Plain `GMT`.
    const offsetMs = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000
    return sign === '-' ? -offsetMs : offsetMs
  }

  /** The first instant in (lowMs, highMs] whose offset differs from that of lowMs. */
  function findChange(lowMs: number, highMs: number, offsetMs: number): number {
    while (highMs - lowMs > 1) {
      const middleMs = Math.floor((lowMs + highMs) / 2)
      if (readOffset(middleMs) === offsetMs) lowMs = middleMs
      else highMs = middleMs
    }
    return highMs
  }

  function readWindow(startMs: number): readonly Stretch[] {
    const stretches: Stretch[] = []
    const endMs = startMs + WINDOW_MS
    let fromMs = startMs
    let offsetMs = readOffset(startMs)
    for (let probeMs = startMs + PROBE_MS; probeMs <= endMs; probeMs += PROBE_MS) {
      const probed = readOffset(probeMs)
      if (probed === offsetMs) continue
      const untilMs = findChange(probeMs - PROBE_MS, probeMs, offsetMs)
      stretches.push({ fromMs, untilMs, offsetMs })
      fromMs = untilMs
      offsetMs = probed
    }
    return [...stretches, { fromMs, untilMs: endMs, offsetMs }]
  }

  function findStretch(atMs: number): Stretch {
    const index = Math.floor(atMs / WINDOW_MS)
    let window = windows.get(index)
    if (window === undefined) {
      window = readWindow(index * WINDOW_MS)
      if (windows.size >= MAX_WINDOWS) windows.clear()
      windows.set(index, window)
    }
    return window.find(({ untilMs }) => atMs < untilMs)!
  }

  function stretchAt(atMs: number): Stretch {
    if (!(atMs >= latest.fromMs && atMs < latest.untilMs)) latest = findStretch(atMs)
    return latest
  }

  return { offsetAt: (atMs) => stretchAt(atMs).offsetMs, stretchAt }
}

/**
 * When the clocks of the zone show this time, given as if it was UTC; for a time that they skip, one beside it. In UTC
 * for a name that is no zone.
 */
export function instantOfLocal(localMs: number, zoneName: string): number {
  const offsetAt = (at: number) => findTimeZone(zoneName)?.offsetAt(at) ?? 0
  return localMs - offsetAt(localMs - offsetAt(localMs))
}
