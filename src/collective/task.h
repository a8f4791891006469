// placeholder: the collective room's coroutine type
#pragma once
