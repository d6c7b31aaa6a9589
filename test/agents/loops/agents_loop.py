# OpenAI's Agents SDK for Python, as it comes.
import asyncio, json, sys, time
from agents import Agent, OpenAIResponsesModel, OpenAIResponsesWSModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

base_url, api_key, name, transport, history = sys.argv[1:6]
set_tracing_disabled(True)
calls = 0


@function_tool
def step(n: int) -> str:
    """Takes a step."""
    global calls
    calls += 1
    return f"step {calls} done"


async def main() -> None:
    client = AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0)
    model = (OpenAIResponsesWSModel if transport == "ws" else OpenAIResponsesModel)(model=name, openai_client=client)
    agent = Agent(name="walker", instructions="Take all steps.", model=model, tools=[step])
    began = time.monotonic()
    result = await Runner.run(agent, "Go. " + "word " * (int(history) // 5), max_turns=40, auto_previous_response_id=transport == "ws")
    print(json.dumps({"calls": calls, "ms": round((time.monotonic() - began) * 1000), "output": result.final_output}))


asyncio.run(main())
