"""The allowlist of Triton candidates (CONTRACTS section 7)."""

from __future__ import annotations

from harness.evaluation.static.allowed import ATTRIBUTES_OF_CONTAINERS, MATH, Allowed, words

TL = "triton.language"
LIBDEVICE = f"{TL}.extra.libdevice"
CUDA = f"{TL}.extra.cuda"
GLUON = "triton.experimental.gluon"
GL = f"{GLUON}.language"


_TYPES = ("bfloat16 float16 float32 float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 int1 int8 int16 "
          "int32 int64 uint8 uint16 uint32 uint64 pi32_t void dtype pointer_type block_type tensor constexpr const "
          "tuple tensor_descriptor tensor_descriptor_type")
_FUNCTIONS = (
    "PropagateNan TRITON_MAX_TENSOR_NUMEL abs add advance arange argmax argmin associative_scan assume atomic_add "
    "atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor broadcast broadcast_to cast cat cdiv "
    "ceil clamp condition cos cumprod cumsum debug_barrier div_rn dot dot_scaled erf exp exp2 expand_dims fdiv flip "
    "floor fma full gather histogram inline_asm_elementwise interleave join load load_tensor_descriptor log log2 "
    "make_block_ptr make_tensor_descriptor map_elementwise max max_constancy max_contiguous maximum min minimum mul "
    "multiple_of num_programs pair_uniform_to_normal permute philox philox_impl program_id rand rand4x randint "
    "randint4x randn randn4x range ravel reduce reduce_or reshape rsqrt sigmoid sin slice softmax sort split sqrt "
    "sqrt_rn squeeze static_assert static_range store store_tensor_descriptor sub sum swizzle2d to_tensor topk trans "
    "umulhi uint_to_uniform_float unsqueeze view where xor_sum zeros zeros_like")
_TL_MATH = "abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi"
_LIBDEVICE = (
    "abs acos acosh add_rd add_rn add_ru add_rz asin asinh atan atan2 atanh brev byte_perm cbrt ceil clz copysign cos "
    "cosh cospi cyl_bessel_i0 cyl_bessel_i1 div_rd div_rn div_ru div_rz double2float_rd "
    "double2float_rn double2float_ru double2float_rz double2hiint double2int_rd double2int_rn double2int_ru "
    "double2int_rz double2ll_rd double2ll_rn double2ll_ru double2ll_rz double2loint double2uint_rd double2uint_rn "
    "double2uint_ru double2uint_rz double2ull_rd double2ull_rn double2ull_ru double2ull_rz double_as_longlong erf erfc "
    "erfcinv erfcx erfinv exp exp10 exp2 expm1 fast_cosf fast_dividef fast_expf fast_exp10f fast_log10f "
    "fast_log2f fast_logf fast_powf fast_sinf fast_tanf fast_tanhf fdim ffs finitef float2int_rd "
    "float2int_rn float2int_ru float2int_rz float2ll_rd float2ll_rn float2ll_ru float2ll_rz float2uint_rd "
    "float2uint_rn float2uint_ru float2uint_rz float2ull_rd float2ull_rn float2ull_ru float2ull_rz float_as_int "
    "float_as_uint floor fma fma_rd fma_rn fma_ru fma_rz fmod hadd hiloint2double hypot ilogb int2double_rn "
    "int2float_rd int2float_rn int2float_ru int2float_rz int_as_float isfinited isinf isnan j0 j1 jn ldexp lgamma "
    "ll2double_rd ll2double_rn ll2double_ru ll2double_rz ll2float_rd ll2float_rn ll2float_ru ll2float_rz llrint "
    "llround log log10 log1p log2 logb longlong_as_double mul24 mul_rd mul_rn mul_ru mul_rz mulhi nearbyint nextafter "
    "norm3d norm4d normcdf normcdfinv popc pow rcbrt rcp64h rcp_rd rcp_rn rcp_ru rcp_rz remainder rhadd rhypot rint "
    "rnorm3d rnorm4d round rsqrt rsqrt_rn sad saturatef scalbn signbit sin sinh sinpi sqrt sqrt_rd sqrt_rn sqrt_ru "
    "sqrt_rz sub_rd sub_rn sub_ru sub_rz tan tanh tgamma trunc uint2double_rn uint2float_rd uint2float_rn "
    "uint2float_ru uint2float_rz uint_as_float ull2double_rd ull2double_rn ull2double_ru ull2double_rz ull2float_rd "
    "ull2float_rn ull2float_ru ull2float_rz y0 y1 yn")
_GLUON = (
    "AutoLayout BlockedLayout CoalescedLayout DistributedLinearLayout DotOperandLayout NVMMADistributedLayout "
    "NVMMASharedLayout PaddedSharedLayout SharedLinearLayout SliceLayout SwizzledSharedLayout allocate_shared_memory "
    "bank_conflicts barrier convert_layout dot_fma fp4_to_fp full_like num_ctas num_warps set_auto_layout "
    "shared_memory_descriptor thread_barrier to_linear_layout warp_specialize")
_GLUON_HOPPER = (
    "async_copy.async_copy_global_to_shared async_copy.commit_group async_copy.wait_group "
    "async_copy.mbarrier_arrive fence_async_shared mbarrier.MBarrierLayout mbarrier.allocate_mbarrier mbarrier.init "
    "mbarrier.invalidate mbarrier.wait mbarrier.expect mbarrier.arrive mma_v2 tma.async_copy_global_to_shared "
    "tma.async_copy_shared_to_global tma.store_wait tma.tensor_descriptor tma.make_tensor_descriptor warpgroup_mma "
    "warpgroup_mma_accumulator warpgroup_mma_init warpgroup_mma_wait")

_KERNEL = (words(_TYPES, TL) | words(_FUNCTIONS, TL) | words(_TL_MATH, f"{TL}.math") | words(_LIBDEVICE, LIBDEVICE)
           | words("gdc_launch_dependents gdc_wait", CUDA)
           | words("rand randint randn philox", f"{TL}.random") | words(_TYPES, GL) | words(_FUNCTIONS, GL)
           | words(_GLUON, GL) | words(_GLUON_HOPPER, f"{GL}.nvidia.hopper")
           | words("async_copy.async_copy_global_to_shared async_copy.commit_group "
                   "async_copy.wait_group mbarrier.init mbarrier.wait mma_v2",
                   f"{GL}.nvidia.ampere")
           | frozenset({"triton.cdiv", "triton.next_power_of_2"}))

_HOST = (
    words("empty empty_like empty_strided zeros zeros_like bfloat16 float16 half float32 float float64 "
          "double float8_e4m3fn float8_e5m2 int8 uint8 int16 int32 int int64 long bool Tensor device dtype "
          "Size finfo iinfo uint16 uint32 uint64", "torch")
    | words("get_device_properties current_device", "torch.cuda")
    | words("cdiv next_power_of_2 set_allocator", "triton")
    | frozenset({"triton.tools.tensor_descriptor.TensorDescriptor",
                 "triton.runtime.driver.active.utils.get_device_properties",
                 "triton.runtime.driver.active.get_current_device",
                 "triton.runtime.driver.active.get_active_torch_device",
                 f"{GLUON}.nvidia.hopper.TensorDescriptor"})
    | words(_TYPES, TL) | words(_TYPES, GL) | words(_GLUON, GL)
    | frozenset(f"math.{name}" for name in MATH))

ALLOWED = Allowed(
    modules=frozenset({"torch", "triton", TL, f"{TL}.math", f"{TL}.extra", LIBDEVICE, CUDA, "triton.tools",
                       "triton.tools.tensor_descriptor", "triton.experimental", GLUON, GL, f"{GL}.nvidia",
                       f"{GL}.nvidia.hopper", f"{GL}.nvidia.hopper.tma", f"{GL}.nvidia.hopper.mbarrier",
                       f"{GL}.nvidia.hopper.async_copy", f"{GL}.nvidia.ampere", f"{GLUON}.nvidia",
                       f"{GLUON}.nvidia.hopper", "math"}),
    host=_HOST,
    kernel=_KERNEL | frozenset(f"math.{name}" for name in ("e", "inf", "nan", "pi", "tau")),
    calls_at_import=frozenset({f"{TL}.constexpr", f"{GL}.constexpr", "triton.set_allocator"})
    | frozenset(f"math.{name}" for name in MATH),
    host_attributes=ATTRIBUTES_OF_CONTAINERS | words(
        "shape stride size numel dim ndim dtype device element_size itemsize nbytes is_contiguous contiguous "
        "view reshape view_as unsqueeze squeeze transpose permute movedim t T mT flatten unflatten expand "
        "expand_as narrow select new_empty new_zeros zero_ fill_ is_cuda is_floating_point storage_offset "
        "index type eps tiny bits multi_processor_count shared_memory_per_block shared_memory_per_block_optin "
        "major minor warp_size from_tensor block_shape"),
    kernel_attributes=words(
        "T abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min "
        "atomic_or atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum dtype element_ty erf "
        "exp exp2 expand_dims flip floor gather histogram log log2 logical_and logical_or max min numel "
        "permute ravel reduce reduce_or reshape rsqrt scalar shape sigmoid sin softmax sort split sqrt "
        "sqrt_rn squeeze strides sum to trans type unsqueeze value view xor_sum load store gather scatter "
        "primitive_bitwidth itemsize is_bf16 is_bool is_floating is_fp16 is_fp32 is_fp64 is_fp8 is_int "
        "is_int8 is_int16 is_int32 is_int64 is_ptr is_block is_int_signed is_int_unsigned int_bitwidth "
        "fp_mantissa_width name index slice get_layout block_type layout ALL NONE"),  # the last two of PropagateNan
    kernel_builtins=frozenset({"abs", "bool", "float", "int", "isinstance", "len", "list", "max", "min", "range",
                               "tuple", "zip", "str", "sum"}),
    decorators=frozenset({"triton.jit", f"{GLUON}.jit", "triton.heuristics"}),
    decorator_options=frozenset({"noinline", "do_not_specialize", "do_not_specialize_on_alignment"}),
    launch_options=frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "launch_pdl",
                              "launch_cooperative_grid"}),
)
