/** An error that ends the process. The message is for the person who starts it: printed alone, without a stack. */
export class StartFault extends Error {
  /** 2: the process cannot start; 1: a command has begun, and has not done its work. */
  readonly exitStatus: 1 | 2 = 2
}
