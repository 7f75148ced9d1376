/** Which resources of a namespace are meant, by their labels: the LabelSelector of Kubernetes, as a list. */

export const SELECTOR_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const

/** One condition of a selector. A label that is missing fulfils `NotIn` and `DoesNotExist`. */
export interface Requirement {
  readonly key: string
  readonly operator: (typeof SELECTOR_OPERATORS)[number]
  /** Of `In` and `NotIn` at least one, else none. */
  readonly values: readonly string[]
}

/** As `kubectl get -l` takes it: `team=shop,tier in (a,b),!old`. Empty: each resource is meant. */
export function selectorText(selector: readonly Requirement[]): string {
  return selector.map(requirementText).join(',')
}

function requirementText({ key, operator, values }: Requirement): string {
  switch (operator) {
    case 'In':
      return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${values.join(',')})`
    case 'NotIn':
      return values.length === 1 ? `${key}!=${values[0]}` : `${key} notin (${values.join(',')})`
    case 'Exists':
      return key
    case 'DoesNotExist':
      return `!${key}`
  }
}
