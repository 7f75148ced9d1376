import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../../../src/domain/limits.ts'
import { findLabelFault, readAnnotations } from '../../../../src/operator/opt-in/annotations.ts'

const read = (annotations: Record<string, string>) =>
  readAnnotations(
    Object.fromEntries(Object.entries(annotations).map(([name, text]) => [`heartbeat-operator.io/${name}`, text])),
  )

describe('the annotations of a CronJob', () => {
  it('become the fields of its HeartbeatCheck', () => {
    const annotations = {
      'grace-seconds': '600',
      'max-runtime-seconds': ' 7200 ',
      project: 'payments',
      'display-name': 'Nightly backup',
      description: 'Backs up the shop.\nAsk team payments.',
    }
    expect(read(annotations)).toEqual({
      fields: {
        graceSeconds: 600,
        maxRuntimeSeconds: 7_200,
        project: 'payments',
        displayName: 'Nightly backup',
        description: 'Backs up the shop.\nAsk team payments.',
      },
      faults: [],
    })
  })

  it('leave the defaults without them, and others have no effect', () => {
    expect(readAnnotations(undefined)).toEqual({ fields: {}, faults: [] })
    expect(readAnnotations({ 'grace-seconds': '600' })).toEqual({ fields: {}, faults: [] })
  })

  it('have the limits of the fields, on both sides', () => {
    const { graceSeconds, maxRuntimeSeconds } = LIMITS
    const limits = [
      ['grace-seconds', graceSeconds],
      ['max-runtime-seconds', maxRuntimeSeconds],
    ] as const
    for (const [name, { min, max }] of limits) {
      for (const value of [min, max]) expect(read({ [name]: String(value) }).faults).toEqual([])
      for (const value of [min - 1, max + 1]) expect(read({ [name]: String(value) }).faults).toHaveLength(1)
    }
    expect(read({ 'display-name': 'n'.repeat(LIMITS.nameLength) }).faults).toEqual([])
    expect(read({ 'display-name': 'n'.repeat(LIMITS.nameLength + 1) }).faults).toHaveLength(1)
    expect(read({ description: 'd'.repeat(LIMITS.descriptionLength) }).faults).toEqual([])
    expect(read({ description: 'd'.repeat(LIMITS.descriptionLength + 1) }).faults).toHaveLength(1)
  })
})

describe('an invalid annotation', () => {
  it.each(['5m', '', '-1', '1.5', '1e3', '0x10', '9'.repeat(16)])('is no number: %j', (text) => {
    const { fields, faults } = read({ 'grace-seconds': text })
    expect(fields).toEqual({})
    const { min, max } = LIMITS.graceSeconds
    expect(faults).toEqual([
      `annotation heartbeat-operator.io/grace-seconds must be an integer from ${min} to ${max}, such as "600", and is ${JSON.stringify(text)}: the default is used until it is corrected`,
    ])
  })

  it.each([
    [
      'project',
      'Pay!',
      'must be the slug of a project: a-z, 0-9, - and _, beginning and ending with a letter or digit, such as "payments", and is "Pay!"',
    ],
    [
      'display-name',
      ' ',
      'must not be empty: give a name, or leave the field out to use metadata.name, such as "Nightly backup", and is " "',
    ],
    ['display-name', 'a\nb', 'must be one line, without control characters, such as "Nightly backup", and is "a\\nb"'],
    [
      'description',
      'a\u0000',
      'must have no control characters other than line breaks and tabs, such as "Backs up the shop", and is "a\\u0000"',
    ],
  ])('names itself, its value and a valid form: %s %j', (name, text, fault) => {
    expect(read({ [name]: text })).toEqual({
      fields: {},
      faults: [`annotation heartbeat-operator.io/${name} ${fault}: the default is used until it is corrected`],
    })
  })

  it('does not keep the others from being copied, and each has its own fault', () => {
    const { fields, faults } = read({ 'grace-seconds': 'x', project: '!', 'max-runtime-seconds': '7200' })
    expect(fields).toEqual({ maxRuntimeSeconds: 7_200 })
    expect(faults.map((fault) => fault.split(' ')[1])).toEqual([
      'heartbeat-operator.io/grace-seconds',
      'heartbeat-operator.io/project',
    ])
  })

  it('is shown cut, so that the Event has room for it', () => {
    const [fault] = read({ 'grace-seconds': '😀'.repeat(200_000) }).faults
    expect(Buffer.byteLength(fault!)).toBeLessThan(1_024)
    expect(fault).toContain(`is "${'😀'.repeat(100)}...":`)
  })
})

describe('a typing error', () => {
  it('in the name of an annotation is a fault that has the valid names', () => {
    expect(read({ 'grace-second': '900', 'grace-seconds': '600' })).toEqual({
      fields: { graceSeconds: 600 },
      faults: [
        'annotation heartbeat-operator.io/grace-second is unknown and has no effect: those of a CronJob are heartbeat-operator.io/grace-seconds, heartbeat-operator.io/max-runtime-seconds, heartbeat-operator.io/project, heartbeat-operator.io/display-name, heartbeat-operator.io/description',
      ],
    })
    expect(read({ watch: 'true' }).faults).toEqual([
      'annotation heartbeat-operator.io/watch has no effect: it is a label',
    ])
  })

  it('is none where the operator knows the annotation of another kind of object, or the prefix is not ours', () => {
    const known = [
      'adopt',
      'adopt-check-id',
      'check-name',
      'installation',
      'projects',
      'reconcile-requested-at',
      'take-over',
    ]
    expect(read(Object.fromEntries(known.map((name) => [name, 'x']))).faults).toEqual([])
    expect(
      readAnnotations({ 'heartbeat-operator.io.example.com/x': '1', 'example.com/grace-second': '1' }).faults,
    ).toEqual([])
  })

  it('is named three times at most', () => {
    const names = Array.from({ length: 9 }, (_, index) => [`x-${index}`, ''])
    expect(read(Object.fromEntries(names)).faults).toHaveLength(3)
  })

  it.each(['no', 'True', '', 'yes', ' true'])('in the value of the label: %j', (value) => {
    expect(findLabelFault({ 'heartbeat-operator.io/watch': value })).toBe(
      `label heartbeat-operator.io/watch must be "true" or "false", and is ${JSON.stringify(value)}: it has no effect until it is corrected`,
    )
  })

  it('is none in a valid label, or without one', () => {
    const labels = [
      undefined,
      {},
      { watch: 'no' },
      ...['true', 'false'].map((value) => ({ 'heartbeat-operator.io/watch': value })),
    ]
    for (const one of labels) expect(findLabelFault(one)).toBeNull()
  })
})
